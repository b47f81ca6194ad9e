ALTER TABLE `affinity` ADD `cached_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `requests` ADD `moved_tokens` integer DEFAULT 0 NOT NULL;