CREATE TABLE `meter_open` (
	`account_id` text NOT NULL,
	`window` text NOT NULL,
	`at` integer NOT NULL,
	`used_percent` real NOT NULL,
	`window_minutes` integer NOT NULL,
	`reset_at` integer,
	`running` integer NOT NULL,
	`priced_micros` integer NOT NULL,
	`tokens` integer NOT NULL,
	`requests` integer NOT NULL,
	`unpriced` integer NOT NULL,
	PRIMARY KEY(`account_id`, `window`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `meter_readings` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` text NOT NULL,
	`window` text NOT NULL,
	`at` integer NOT NULL,
	`used_percent` real NOT NULL,
	`window_minutes` integer NOT NULL,
	`reset_at` integer,
	`running` integer NOT NULL,
	`priced_micros_here` integer NOT NULL,
	`tokens_here` integer NOT NULL,
	`requests_here` integer NOT NULL,
	`unpriced_here` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `meter_readings_account` ON `meter_readings` (`account_id`,`window`,`id`);--> statement-breakpoint
CREATE INDEX `meter_readings_at` ON `meter_readings` (`at`);--> statement-breakpoint
CREATE INDEX `account_events_kind` ON `account_events` (`kind`,`at`);