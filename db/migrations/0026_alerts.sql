CREATE TABLE `alert_channels` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`target_sealed` text NOT NULL,
	`secret_sealed` text,
	`events` text,
	`min_severity` text NOT NULL,
	`quiet_hours` text,
	`is_active` integer NOT NULL,
	`allow_private_address` integer NOT NULL,
	`show_emails` integer NOT NULL,
	`repeat_daily` integer NOT NULL,
	`may_get_security` integer NOT NULL,
	`last_delivery` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_channels_name_unique` ON `alert_channels` (`name`);--> statement-breakpoint
CREATE TABLE `alert_deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`channel_id` text NOT NULL,
	`incident_id` text NOT NULL,
	`event_key` text NOT NULL,
	`edge` text NOT NULL,
	`at` integer NOT NULL,
	`status` text NOT NULL,
	`tries` integer DEFAULT 0 NOT NULL,
	`next_at` integer NOT NULL,
	`sent_at` integer,
	`last_error` text,
	FOREIGN KEY (`channel_id`) REFERENCES `alert_channels`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`incident_id`) REFERENCES `alert_incidents`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `alert_deliveries_due` ON `alert_deliveries` (`status`,`next_at`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_channel` ON `alert_deliveries` (`channel_id`,`at`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_incident` ON `alert_deliveries` (`incident_id`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_at` ON `alert_deliveries` (`at`);--> statement-breakpoint
CREATE TABLE `alert_incidents` (
	`id` text PRIMARY KEY NOT NULL,
	`key` text NOT NULL,
	`event` text NOT NULL,
	`severity` text NOT NULL,
	`subject_kind` text NOT NULL,
	`subject_id` text NOT NULL,
	`subject_name` text NOT NULL,
	`subject_masked` text NOT NULL,
	`text` text NOT NULL,
	`text_masked` text NOT NULL,
	`path` text NOT NULL,
	`since` integer NOT NULL,
	`raised_at` integer,
	`recovered_at` integer,
	`acknowledged_at` integer,
	`acknowledged_by` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_incidents_open` ON `alert_incidents` (`key`) WHERE recovered_at IS NULL;--> statement-breakpoint
CREATE INDEX `alert_incidents_recovered` ON `alert_incidents` (`recovered_at`);