-- +goose Up
CREATE TABLE `activities` (
    `id` integer NOT NULL PRIMARY KEY,
    `name` text NOT NULL,
    `state` text NOT NULL,
    `starts_at` integer NOT NULL,
    `ends_at` integer NOT NULL,
    `payment_window_ms` integer NOT NULL
);
CREATE TABLE `stocks` (
    `id` text NOT NULL PRIMARY KEY,
    `activity_id` integer NOT NULL,
    `sku_id` integer NOT NULL,
    `name` text NOT NULL,
    `price` integer NOT NULL,
    `total` integer NOT NULL,
    `per_user_limit` integer NOT NULL,
    `segments` integer NOT NULL,
    `reserved` integer NOT NULL DEFAULT 0,
    `sold` integer NOT NULL DEFAULT 0,
    `epoch` integer NOT NULL DEFAULT 0,
    CONSTRAINT `stocks_within_total` CHECK (reserved >= 0 AND sold >= 0 AND reserved + sold <= total)
);
CREATE UNIQUE INDEX `stock_activity_id_sku_id` ON `stocks` (`activity_id`, `sku_id`);
CREATE TABLE `quotas` (
    `id` text NOT NULL PRIMARY KEY,
    `used` integer NOT NULL,
    `cap` integer NOT NULL,
    CONSTRAINT `quotas_within_cap` CHECK (used >= 0 AND used <= cap)
);
CREATE TABLE `orders` (
    `id` text NOT NULL PRIMARY KEY,
    `activity_id` integer NOT NULL,
    `sku_id` integer NOT NULL,
    `buyer` text NOT NULL,
    `request` text NULL,
    `quantity` integer NOT NULL,
    `epoch` integer NOT NULL,
    `status` text NOT NULL,
    `reason` text NOT NULL,
    `payment` text NOT NULL,
    `hold` text NOT NULL,
    `created_at` integer NOT NULL,
    `expires_at` integer NOT NULL,
    `paid_at` integer NOT NULL,
    `closed_at` integer NOT NULL,
    CONSTRAINT `orders_quantity` CHECK (quantity > 0)
);
CREATE UNIQUE INDEX `order_activity_id_sku_id_buyer_request` ON `orders` (`activity_id`, `sku_id`, `buyer`, `request`);
CREATE INDEX `order_status_expires_at_activity_id_sku_id` ON `orders` (`status`, `expires_at`, `activity_id`, `sku_id`);
CREATE INDEX `order_activity_id_sku_id_id_status_quantity` ON `orders` (`activity_id`, `sku_id`, `id`, `status`, `quantity`);
CREATE TABLE `outbox` (
    `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    `hold` text NOT NULL,
    `status` text NOT NULL,
    `activity_id` integer NOT NULL,
    `sku_id` integer NOT NULL,
    `units` integer NOT NULL,
    `snapshot` text NOT NULL,
    `created_at` integer NOT NULL
);
CREATE UNIQUE INDEX `effect_hold_status` ON `outbox` (`hold`, `status`);
CREATE INDEX `effect_activity_id_sku_id` ON `outbox` (`activity_id`, `sku_id`);
CREATE TABLE `dead_letters` (
    `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    `subject` text NOT NULL,
    `intent` text NOT NULL,
    `payload` blob NOT NULL,
    `reason` text NOT NULL,
    `created_at` integer NOT NULL
);
CREATE UNIQUE INDEX `deadletter_subject` ON `dead_letters` (`subject`);
CREATE TABLE `fences` (
    `name` text NOT NULL PRIMARY KEY,
    `number` integer NOT NULL
);
CREATE TABLE `deployments` (
    `name` text NOT NULL PRIMARY KEY,
    `value` text NOT NULL
);

-- +goose Down
DROP TABLE `deployments`;
DROP TABLE `fences`;
DROP TABLE `dead_letters`;
DROP TABLE `outbox`;
DROP TABLE `orders`;
DROP TABLE `quotas`;
DROP TABLE `stocks`;
DROP TABLE `activities`;
