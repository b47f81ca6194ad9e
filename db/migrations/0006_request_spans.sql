CREATE TABLE `request_spans` (
	`span_hours` integer NOT NULL,
	`dimension` text NOT NULL,
	`start` integer NOT NULL,
	`id` text NOT NULL,
	`requests` integer NOT NULL,
	`errors` integer NOT NULL,
	`cancelled` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	`unpriced` integer NOT NULL,
	`active_hours` integer NOT NULL,
	PRIMARY KEY(`span_hours`, `dimension`, `start`, `id`)
) WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `requests_trouble`;--> statement-breakpoint
CREATE INDEX `requests_trouble` ON `requests` (`started_at`,`id`,`status`,`error_code`,`account_id`,`key_id`,`model`) WHERE "requests"."status" <> 'ok';