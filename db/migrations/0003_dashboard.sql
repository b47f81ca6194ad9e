CREATE TABLE `account_events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` text NOT NULL,
	`at` integer NOT NULL,
	`kind` text NOT NULL,
	`result` text NOT NULL,
	`detail` text,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `account_events_account` ON `account_events` (`account_id`,`id`);--> statement-breakpoint
CREATE TABLE `oauth_flows` (
	`id` text PRIMARY KEY NOT NULL,
	`method` text NOT NULL,
	`account_id` text,
	`status` text NOT NULL,
	`error_message` text,
	`result_account_id` text,
	`state_hash` text,
	`secret_sealed` text NOT NULL,
	`user_code` text,
	`interval_seconds` integer,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth_flows_stateHash_unique` ON `oauth_flows` (`state_hash`);--> statement-breakpoint
CREATE TABLE `usage_samples` (
	`account_id` text NOT NULL,
	`hour` integer NOT NULL,
	`five_hour_used` real,
	`weekly_used` real,
	`monthly_used` real,
	PRIMARY KEY(`account_id`, `hour`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `request_hours_account` ON `request_hours` (`account_id`,`hour`);--> statement-breakpoint
CREATE INDEX `request_hours_key` ON `request_hours` (`key_id`,`hour`);--> statement-breakpoint
CREATE INDEX `requests_model` ON `requests` (`model`,`started_at`);--> statement-breakpoint
CREATE INDEX `requests_request` ON `requests` (`request_id`);--> statement-breakpoint
CREATE INDEX `requests_conversation` ON `requests` (`conversation_hash`,`started_at`) WHERE "requests"."conversation_hash" IS NOT NULL;--> statement-breakpoint
CREATE INDEX `requests_trouble` ON `requests` (`started_at`,`id`) WHERE "requests"."status" <> 'ok';--> statement-breakpoint
CREATE INDEX `requests_ended` ON `requests` ("started_at" + "total_ms");