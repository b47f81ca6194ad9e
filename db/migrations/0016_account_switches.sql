CREATE TABLE `account_tags` (
	`account_id` text NOT NULL,
	`tag` text NOT NULL,
	PRIMARY KEY(`account_id`, `tag`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
ALTER TABLE `accounts` ADD `max_used_percent_primary` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `max_used_percent_secondary` integer;--> statement-breakpoint
ALTER TABLE `accounts` ADD `owner_user_id` text;--> statement-breakpoint
ALTER TABLE `accounts` ADD `reserve_for_owner` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `accounts` ADD `position` integer;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `assigned_tags` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `prohibit_fast_mode` text;--> statement-breakpoint
-- Nothing ever counted towards limits in credits.
DELETE FROM `api_key_limits` WHERE `limit_type` = 'credits';