PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE `__new_affinity` (
	`kind` text NOT NULL,
	`key_hash` text NOT NULL,
	`account_id` text NOT NULL,
	`mixed` integer DEFAULT false NOT NULL,
	`used_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `key_hash`)
);
--> statement-breakpoint
INSERT INTO `__new_affinity`("kind", "key_hash", "account_id", "mixed", "used_at") SELECT "kind", "key_hash", "account_id", "mixed", "used_at" FROM `affinity`;--> statement-breakpoint
DROP TABLE `affinity`;--> statement-breakpoint
ALTER TABLE `__new_affinity` RENAME TO `affinity`;--> statement-breakpoint
PRAGMA foreign_keys=ON;--> statement-breakpoint
CREATE INDEX `affinity_used` ON `affinity` (`used_at`);--> statement-breakpoint
CREATE INDEX `affinity_account` ON `affinity` (`account_id`);--> statement-breakpoint
CREATE INDEX `challenges_session` ON `challenges` (`session_id`);--> statement-breakpoint
CREATE INDEX `oauth_flows_account` ON `oauth_flows` (`account_id`);