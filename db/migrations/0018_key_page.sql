CREATE TABLE `key_sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`key_hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `key_sessions_key` ON `key_sessions` (`key_hash`);--> statement-breakpoint
ALTER TABLE `api_keys` ADD `holder_may_regenerate` integer DEFAULT false NOT NULL;