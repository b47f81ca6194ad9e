CREATE TABLE `automation_runs` (
	`id` text PRIMARY KEY NOT NULL,
	`automation_id` text NOT NULL,
	`trigger` text NOT NULL,
	`slot` integer,
	`status` text NOT NULL,
	`started_at` integer NOT NULL,
	`finished_at` integer,
	`kind` text NOT NULL,
	`model` text,
	`effort` text,
	`prompt` text NOT NULL,
	`include_paused` integer NOT NULL,
	`error_code` text,
	`error_message` text,
	`accounts` text NOT NULL,
	FOREIGN KEY (`automation_id`) REFERENCES `automations`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `automation_runs_slot` ON `automation_runs` (`automation_id`,`slot`);--> statement-breakpoint
CREATE INDEX `automation_runs_started` ON `automation_runs` (`started_at`);--> statement-breakpoint
CREATE INDEX `automation_runs_status` ON `automation_runs` (`status`);--> statement-breakpoint
CREATE TABLE `automations` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`enabled` integer NOT NULL,
	`kind` text NOT NULL,
	`model` text,
	`effort` text,
	`prompt` text NOT NULL,
	`include_paused` integer NOT NULL,
	`time` text NOT NULL,
	`zone` text NOT NULL,
	`days` text NOT NULL,
	`spread_minutes` integer NOT NULL,
	`account_ids` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
