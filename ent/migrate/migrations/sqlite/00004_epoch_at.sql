-- +goose Up
ALTER TABLE `stocks` ADD COLUMN `epoch_at` integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE `stocks` DROP COLUMN `epoch_at`;
