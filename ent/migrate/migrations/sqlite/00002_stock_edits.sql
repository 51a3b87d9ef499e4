-- +goose Up
CREATE TABLE `stock_edits` (
    `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    `sale` text NOT NULL,
    `subject` text NOT NULL,
    `delta` integer NOT NULL,
    `total` integer NOT NULL,
    `reason` text NOT NULL,
    `created_at` integer NOT NULL
);
CREATE UNIQUE INDEX `stockedit_subject` ON `stock_edits` (`subject`);
CREATE INDEX `stockedit_sale_id` ON `stock_edits` (`sale`, `id`);

-- +goose Down
DROP TABLE `stock_edits`;
