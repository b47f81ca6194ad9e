CREATE TABLE `account_catalogs` (
	`account_id` text NOT NULL,
	`client_version` text NOT NULL,
	`fetched_at` integer NOT NULL,
	`models` text NOT NULL,
	PRIMARY KEY(`account_id`, `client_version`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `account_usage` (
	`account_id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`snapshot` text NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`chatgpt_account_id` text,
	`chatgpt_user_id` text,
	`email` text NOT NULL,
	`alias` text,
	`plan_type` text NOT NULL,
	`workspace_id` text,
	`workspace_label` text,
	`seat_type` text,
	`routing_policy` text DEFAULT 'normal' NOT NULL,
	`security_work_authorized` integer DEFAULT false NOT NULL,
	`access_token_sealed` text NOT NULL,
	`refresh_token_sealed` text NOT NULL,
	`id_token_sealed` text NOT NULL,
	`last_refresh_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`status` text DEFAULT 'active' NOT NULL,
	`cause` text,
	`evidence` text,
	`since` integer,
	`until` integer,
	`next_check_at` integer,
	`attempts` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `accounts_identity` ON `accounts` (`email`,`chatgpt_account_id`);--> statement-breakpoint
CREATE TABLE `affinity` (
	`kind` text NOT NULL,
	`key_hash` text NOT NULL,
	`account_id` text NOT NULL,
	`mixed` integer DEFAULT false NOT NULL,
	`used_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `key_hash`),
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `affinity_used` ON `affinity` (`used_at`);--> statement-breakpoint
CREATE TABLE `api_key_limits` (
	`id` text PRIMARY KEY NOT NULL,
	`key_id` text NOT NULL,
	`limit_type` text NOT NULL,
	`limit_window` text NOT NULL,
	`max_value` integer NOT NULL,
	`current_value` integer DEFAULT 0 NOT NULL,
	`model_filter` text DEFAULT '' NOT NULL,
	`reset_at` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `api_key_limits_key` ON `api_key_limits` (`key_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `api_key_limits_identity` ON `api_key_limits` (`key_id`,`limit_type`,`limit_window`,`model_filter`);--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`key_hash` text NOT NULL,
	`key_prefix` text NOT NULL,
	`is_active` integer DEFAULT true NOT NULL,
	`deactivated_reason` text,
	`owner_user_id` text,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	`last_used_at` integer,
	`allowed_models` text,
	`apply_to_codex_model` integer DEFAULT false NOT NULL,
	`enforced_model` text,
	`enforced_reasoning_effort` text,
	`allowed_reasoning_efforts` text,
	`enforced_service_tier` text,
	`traffic_class` text DEFAULT 'foreground' NOT NULL,
	`transport_policy_override` text,
	`usage_sections` text DEFAULT 'upstream_limits,account_pool_usage' NOT NULL,
	`assigned_account_ids` text,
	`request_count` integer DEFAULT 0 NOT NULL,
	`input_tokens` integer DEFAULT 0 NOT NULL,
	`cached_input_tokens` integer DEFAULT 0 NOT NULL,
	`output_tokens` integer DEFAULT 0 NOT NULL,
	`cost_micros` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_keyHash_unique` ON `api_keys` (`key_hash`);--> statement-breakpoint
CREATE TABLE `attempts` (
	`request_row_id` text NOT NULL,
	`n` integer NOT NULL,
	`account_id` text,
	`started_at` integer NOT NULL,
	`duration_ms` real NOT NULL,
	`outcome` text NOT NULL,
	`upstream_status` integer,
	`code` text,
	`message` text,
	`considered` text,
	PRIMARY KEY(`request_row_id`, `n`),
	FOREIGN KEY (`request_row_id`) REFERENCES `requests`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `audit_logs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`event` text NOT NULL,
	`actor` text NOT NULL,
	`target` text,
	`method` text,
	`address` text,
	`severity` text NOT NULL,
	`details` text
);
--> statement-breakpoint
CREATE INDEX `audit_logs_at` ON `audit_logs` (`at`);--> statement-breakpoint
CREATE TABLE `facts` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `firewall_entries` (
	`ip_address` text PRIMARY KEY NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `request_hours` (
	`hour` integer NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`model` text NOT NULL,
	`requests` integer NOT NULL,
	`errors` integer NOT NULL,
	`cancelled` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	`unpriced` integer NOT NULL,
	PRIMARY KEY(`hour`, `account_id`, `key_id`, `model`)
);
--> statement-breakpoint
CREATE TABLE `requests` (
	`id` text PRIMARY KEY NOT NULL,
	`request_id` text NOT NULL,
	`started_at` integer NOT NULL,
	`route` text NOT NULL,
	`kind` text NOT NULL,
	`transport` text NOT NULL,
	`upstream_transport` text,
	`key_id` text,
	`account_id` text,
	`model` text,
	`reasoning_effort` text,
	`service_tier` text,
	`response_id` text,
	`conversation_hash` text,
	`moved` integer DEFAULT false NOT NULL,
	`status` text NOT NULL,
	`http_status` integer NOT NULL,
	`phase` text,
	`error_code` text,
	`error_message` text,
	`input_tokens` integer,
	`cached_input_tokens` integer,
	`output_tokens` integer,
	`reasoning_tokens` integer,
	`cost_micros` integer,
	`client_ip` text,
	`user_agent` text,
	`attempts` integer NOT NULL,
	`admit_ms` real,
	`select_ms` real,
	`connect_ms` real,
	`first_event_ms` real,
	`total_ms` real NOT NULL
);
--> statement-breakpoint
CREATE INDEX `requests_started` ON `requests` (`started_at`,`id`);--> statement-breakpoint
CREATE INDEX `requests_account` ON `requests` (`account_id`,`started_at`);--> statement-breakpoint
CREATE INDEX `requests_key` ON `requests` (`key_id`,`started_at`);--> statement-breakpoint
CREATE TABLE `settings` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL,
	`updated_at` integer NOT NULL
);
