CREATE TABLE `egress_endpoints` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`scheme` text NOT NULL,
	`host` text NOT NULL,
	`port` integer NOT NULL,
	`username` text,
	`password_sealed` text,
	`is_active` integer DEFAULT true NOT NULL,
	`last_test` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `egress_endpoints_name_unique` ON `egress_endpoints` (`name`);--> statement-breakpoint
CREATE TABLE `egress_members` (
	`pool_id` text NOT NULL,
	`endpoint_id` text NOT NULL,
	`sort_order` integer NOT NULL,
	`is_active` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`pool_id`, `endpoint_id`),
	FOREIGN KEY (`pool_id`) REFERENCES `egress_pools`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`endpoint_id`) REFERENCES `egress_endpoints`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `egress_members_endpoint` ON `egress_members` (`endpoint_id`);--> statement-breakpoint
CREATE TABLE `egress_pools` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`is_active` integer DEFAULT true NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `egress_pools_name_unique` ON `egress_pools` (`name`);--> statement-breakpoint
ALTER TABLE `accounts` ADD `egress_pool_id` text;--> statement-breakpoint
ALTER TABLE `oauth_flows` ADD `egress_pool_id` text;--> statement-breakpoint
ALTER TABLE `requests` ADD `egress_reason` text;