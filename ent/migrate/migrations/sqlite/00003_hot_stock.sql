-- +goose Up
CREATE TABLE `hot_sales` (
    `id` text NOT NULL PRIMARY KEY,
    `stage` text NOT NULL,
    `state` text NOT NULL,
    `starts_at` integer NOT NULL,
    `ends_at` integer NOT NULL,
    `per_user_limit` integer NOT NULL,
    `epoch` integer NOT NULL,
    `total` integer NOT NULL,
    `available` integer NOT NULL,
    `held` integer NOT NULL,
    `sold` integer NOT NULL,
    `fence` integer NOT NULL,
    `revision` integer NOT NULL,
    CONSTRAINT `hot_sales_balanced` CHECK (available >= 0 AND held >= 0 AND sold >= 0 AND available + held + sold = total)
);
CREATE TABLE `hot_holds` (
    `id` text NOT NULL PRIMARY KEY,
    `buyer` text NOT NULL,
    `request` text NOT NULL,
    `quantity` integer NOT NULL,
    `state` text NOT NULL,
    `created_at` integer NOT NULL
);
CREATE TABLE `hot_requests` (
    `id` text NOT NULL PRIMARY KEY,
    `hold` text NOT NULL
);
CREATE TABLE `hot_buyers` (
    `id` text NOT NULL PRIMARY KEY,
    `units` integer NOT NULL,
    `cap` integer NOT NULL,
    CONSTRAINT `hot_buyers_within_cap` CHECK (units >= 0 AND units <= cap)
);
CREATE TABLE `hot_intents` (
    `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    `part` integer NOT NULL,
    `sale` text NOT NULL,
    `epoch` integer NOT NULL,
    `orders` integer NOT NULL,
    `units` integer NOT NULL,
    `payload` blob NOT NULL,
    `attempts` integer NOT NULL,
    `due_at` integer NOT NULL,
    `created_at` integer NOT NULL
);
CREATE INDEX `hotintent_part_due_at_id` ON `hot_intents` (`part`, `due_at`, `id`);
CREATE INDEX `hotintent_sale_units` ON `hot_intents` (`sale`, `units`);

-- +goose Down
DROP TABLE `hot_intents`;
DROP TABLE `hot_buyers`;
DROP TABLE `hot_requests`;
DROP TABLE `hot_holds`;
DROP TABLE `hot_sales`;
