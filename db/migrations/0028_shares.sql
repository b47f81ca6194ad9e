CREATE TABLE `shares` (
	`holder_id` text PRIMARY KEY NOT NULL,
	`five_hour_percent` real,
	`weekly_percent` real
);
--> statement-breakpoint
ALTER TABLE `requests` ADD `borrowed` integer DEFAULT false NOT NULL;