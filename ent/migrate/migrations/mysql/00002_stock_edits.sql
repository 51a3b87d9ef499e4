-- +goose Up
CREATE TABLE IF NOT EXISTS `stock_edits` (
    `id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `sale` VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `subject` VARCHAR(106) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `delta` BIGINT NOT NULL,
    `total` BIGINT NOT NULL,
    `reason` VARCHAR(200) NOT NULL,
    `created_at` BIGINT NOT NULL,
    UNIQUE INDEX `stockedit_subject` (`subject`),
    INDEX `stockedit_sale_id` (`sale`, `id`)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE `stock_edits`;
