CREATE TABLE `reset_attempts` (
	`account_id` text NOT NULL,
	`credit_id` text NOT NULL,
	`rule` text NOT NULL,
	`at` integer NOT NULL,
	`code` text,
	`nothing_to_reset` text,
	PRIMARY KEY(`account_id`, `credit_id`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `window_starts` (
	`account_id` text NOT NULL,
	`window` text NOT NULL,
	`reset_at` integer NOT NULL,
	`started_at` integer NOT NULL,
	`model` text NOT NULL,
	`result` text,
	`ended_at` integer,
	`error_code` text,
	`error_message` text,
	PRIMARY KEY(`account_id`, `window`, `reset_at`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
ALTER TABLE `accounts` ADD `window_start_enabled` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `accounts` ADD `reset_policy` text;--> statement-breakpoint
ALTER TABLE `accounts` ADD `reset_keep_credits` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `reset_min_blocked_minutes` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `reset_percent` integer;