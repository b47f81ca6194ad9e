CREATE TABLE `planner_decisions` (
	`id` text PRIMARY KEY NOT NULL,
	`created_at` integer NOT NULL,
	`mode` text NOT NULL,
	`account_id` text,
	`scheduled_at` integer NOT NULL,
	`executed_at` integer,
	`gain_percent` real,
	`gain_from` integer,
	`gain_to` integer,
	`status` text NOT NULL,
	`reason` text,
	`model` text,
	`idempotency_key` text NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE set null
);
--> statement-breakpoint
CREATE UNIQUE INDEX `planner_decisions_idempotencyKey_unique` ON `planner_decisions` (`idempotency_key`);--> statement-breakpoint
CREATE INDEX `planner_decisions_scheduled` ON `planner_decisions` (`scheduled_at`);