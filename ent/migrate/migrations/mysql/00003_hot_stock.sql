-- +goose Up
CREATE TABLE IF NOT EXISTS `hot_sales` (
    `id` VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `stage` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `state` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `starts_at` BIGINT NOT NULL,
    `ends_at` BIGINT NOT NULL,
    `per_user_limit` BIGINT NOT NULL,
    `epoch` BIGINT NOT NULL,
    `total` BIGINT NOT NULL,
    `available` BIGINT NOT NULL,
    `held` BIGINT NOT NULL,
    `sold` BIGINT NOT NULL,
    `fence` BIGINT NOT NULL,
    `revision` BIGINT NOT NULL,
    CONSTRAINT `hot_sales_balanced` CHECK (available >= 0 AND held >= 0 AND sold >= 0 AND available + held + sold = total)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `hot_holds` (
    `id` VARCHAR(145) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `buyer` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `request` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `quantity` BIGINT NOT NULL,
    `state` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `created_at` BIGINT NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `hot_requests` (
    `id` VARCHAR(170) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `hold` VARCHAR(145) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `hot_buyers` (
    `id` VARCHAR(105) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `units` BIGINT NOT NULL,
    `cap` BIGINT NOT NULL,
    CONSTRAINT `hot_buyers_within_cap` CHECK (units >= 0 AND units <= cap)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `hot_intents` (
    `id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `part` BIGINT NOT NULL,
    `sale` VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `epoch` BIGINT NOT NULL,
    `orders` BIGINT NOT NULL,
    `units` BIGINT NOT NULL,
    `payload` MEDIUMBLOB NOT NULL,
    `attempts` BIGINT NOT NULL,
    `due_at` BIGINT NOT NULL,
    `created_at` BIGINT NOT NULL,
    INDEX `hotintent_part_due_at_id` (`part`, `due_at`, `id`),
    INDEX `hotintent_sale_units` (`sale`, `units`)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE `hot_intents`;
DROP TABLE `hot_buyers`;
DROP TABLE `hot_requests`;
DROP TABLE `hot_holds`;
DROP TABLE `hot_sales`;
