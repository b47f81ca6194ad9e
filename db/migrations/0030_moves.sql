ALTER TABLE `affinity` ADD `units` real DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `affinity` ADD `move_units` real DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_hours` ADD `moves` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_hours` ADD `avoidable_moves` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_hours` ADD `moved_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_spans` ADD `moves` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_spans` ADD `avoidable_moves` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_spans` ADD `moved_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `requests` ADD `move_avoidable` integer DEFAULT false NOT NULL;