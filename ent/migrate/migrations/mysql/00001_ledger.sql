-- +goose Up
CREATE TABLE IF NOT EXISTS `activities` (
    `id` BIGINT NOT NULL PRIMARY KEY,
    `name` VARCHAR(200) NOT NULL,
    `state` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `starts_at` BIGINT NOT NULL,
    `ends_at` BIGINT NOT NULL,
    `payment_window_ms` BIGINT NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `stocks` (
    `id` VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `activity_id` BIGINT NOT NULL,
    `sku_id` BIGINT NOT NULL,
    `name` VARCHAR(200) NOT NULL,
    `price` BIGINT NOT NULL,
    `total` BIGINT NOT NULL,
    `per_user_limit` BIGINT NOT NULL,
    `segments` BIGINT NOT NULL,
    `reserved` BIGINT NOT NULL DEFAULT 0,
    `sold` BIGINT NOT NULL DEFAULT 0,
    `epoch` BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT `stocks_within_total` CHECK (reserved >= 0 AND sold >= 0 AND reserved + sold <= total),
    UNIQUE INDEX `stock_activity_id_sku_id` (`activity_id`, `sku_id`)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `quotas` (
    `id` VARCHAR(106) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `used` BIGINT NOT NULL,
    `cap` BIGINT NOT NULL,
    CONSTRAINT `quotas_within_cap` CHECK (used >= 0 AND used <= cap)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `orders` (
    `id` VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `activity_id` BIGINT NOT NULL,
    `sku_id` BIGINT NOT NULL,
    `buyer` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `request` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    `quantity` BIGINT NOT NULL,
    `epoch` BIGINT NOT NULL,
    `status` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `reason` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `payment` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `hold` VARCHAR(104) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `created_at` BIGINT NOT NULL,
    `expires_at` BIGINT NOT NULL,
    `paid_at` BIGINT NOT NULL,
    `closed_at` BIGINT NOT NULL,
    CONSTRAINT `orders_quantity` CHECK (quantity > 0),
    UNIQUE INDEX `order_activity_id_sku_id_buyer_request` (`activity_id`, `sku_id`, `buyer`, `request`),
    INDEX `order_status_expires_at_activity_id_sku_id` (`status`, `expires_at`, `activity_id`, `sku_id`),
    INDEX `order_activity_id_sku_id_id_status_quantity` (`activity_id`, `sku_id`, `id`, `status`, `quantity`)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `outbox` (
    `id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `hold` VARCHAR(104) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `status` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `activity_id` BIGINT NOT NULL,
    `sku_id` BIGINT NOT NULL,
    `units` BIGINT NOT NULL,
    `snapshot` VARCHAR(2000) NOT NULL,
    `created_at` BIGINT NOT NULL,
    UNIQUE INDEX `effect_hold_status` (`hold`, `status`),
    INDEX `effect_activity_id_sku_id` (`activity_id`, `sku_id`)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `dead_letters` (
    `id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `subject` VARCHAR(104) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `intent` VARCHAR(2000) NOT NULL,
    `payload` MEDIUMBLOB NOT NULL,
    `reason` VARCHAR(1000) NOT NULL,
    `created_at` BIGINT NOT NULL,
    UNIQUE INDEX `deadletter_subject` (`subject`)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `fences` (
    `name` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `number` BIGINT NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS `deployments` (
    `name` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    `value` VARCHAR(500) NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE `deployments`;
DROP TABLE `fences`;
DROP TABLE `dead_letters`;
DROP TABLE `outbox`;
DROP TABLE `orders`;
DROP TABLE `quotas`;
DROP TABLE `stocks`;
DROP TABLE `activities`;
