CREATE TABLE `model_sources` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kind` text DEFAULT 'openai_compatible' NOT NULL,
	`base_url` text NOT NULL,
	`api_key_sealed` text,
	`supports_chat` integer DEFAULT true NOT NULL,
	`supports_responses` integer DEFAULT false NOT NULL,
	`supports_audio` integer DEFAULT false NOT NULL,
	`supports_embeddings` integer DEFAULT false NOT NULL,
	`timeout_seconds` integer DEFAULT 600 NOT NULL,
	`max_concurrency` integer DEFAULT 0 NOT NULL,
	`is_enabled` integer DEFAULT true NOT NULL,
	`health` text DEFAULT 'unknown' NOT NULL,
	`health_code` text,
	`health_at` integer,
	`last_test` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `model_sources_name_unique` ON `model_sources` (`name`);--> statement-breakpoint
CREATE TABLE `source_models` (
	`id` text PRIMARY KEY NOT NULL,
	`source_id` text NOT NULL,
	`model` text NOT NULL,
	`display_name` text,
	`context_window` integer,
	`max_output_tokens` integer,
	`supports_streaming` integer DEFAULT true NOT NULL,
	`supports_tools` integer DEFAULT false NOT NULL,
	`supports_vision` integer DEFAULT false NOT NULL,
	`input_per_1m` real,
	`cached_input_per_1m` real,
	`output_per_1m` real,
	`audio_per_minute` real,
	`metadata` text,
	`is_enabled` integer DEFAULT true NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`source_id`) REFERENCES `model_sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `source_models_identity` ON `source_models` (`source_id`,`model`);--> statement-breakpoint
CREATE TABLE `new_request_hours` (
	`hour` integer NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`model` text NOT NULL,
	`client` text DEFAULT '' NOT NULL,
	`source_id` text DEFAULT '' NOT NULL,
	`requests` integer NOT NULL,
	`errors` integer NOT NULL,
	`cancelled` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	`unpriced` integer NOT NULL,
	PRIMARY KEY(`hour`, `account_id`, `key_id`, `model`, `client`, `source_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_request_hours` SELECT `hour`, `account_id`, `key_id`, `model`, `client`, '', `requests`, `errors`, `cancelled`,
	`input_tokens`, `cached_input_tokens`, `output_tokens`, `cost_micros`, `unpriced`
FROM `request_hours` ORDER BY `hour`, `account_id`, `key_id`, `model`, `client`;
--> statement-breakpoint
DROP TABLE `request_hours`;
--> statement-breakpoint
ALTER TABLE `new_request_hours` RENAME TO `request_hours`;
--> statement-breakpoint
CREATE INDEX `request_hours_account` ON `request_hours` (`account_id`,`hour`);--> statement-breakpoint
CREATE INDEX `request_hours_key` ON `request_hours` (`key_id`,`hour`);--> statement-breakpoint
ALTER TABLE `api_keys` ADD `assigned_source_ids` text;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `allow_overflow` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `requests` ADD `source_id` text;--> statement-breakpoint
ALTER TABLE `requests` ADD `overflow` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `requests_source` ON `requests` (`source_id`,`started_at`) WHERE "requests"."source_id" IS NOT NULL;
--> statement-breakpoint
INSERT INTO `request_spans` SELECT `span_hours`, 'source', `start`, '', sum(`requests`), sum(`errors`), sum(`cancelled`),
	sum(`input_tokens`), sum(`cached_input_tokens`), sum(`output_tokens`), sum(`cost_micros`), sum(`unpriced`), 0
FROM `request_spans` WHERE `dimension` = 'model' GROUP BY `span_hours`, `start`;
