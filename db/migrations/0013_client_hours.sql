CREATE TABLE `new_request_hours` (
	`hour` integer NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`model` text NOT NULL,
	`client` text DEFAULT '' NOT NULL,
	`requests` integer NOT NULL,
	`errors` integer NOT NULL,
	`cancelled` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	`unpriced` integer NOT NULL,
	PRIMARY KEY(`hour`, `account_id`, `key_id`, `model`, `client`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `new_request_hours` SELECT `hour`, `account_id`, `key_id`, `model`, '', `requests`, `errors`, `cancelled`,
	`input_tokens`, `cached_input_tokens`, `output_tokens`, `cost_micros`, `unpriced`
FROM `request_hours` ORDER BY `hour`, `account_id`, `key_id`, `model`;
--> statement-breakpoint
DROP TABLE `request_hours`;
--> statement-breakpoint
ALTER TABLE `new_request_hours` RENAME TO `request_hours`;
--> statement-breakpoint
CREATE INDEX `request_hours_account` ON `request_hours` (`account_id`,`hour`);
--> statement-breakpoint
CREATE INDEX `request_hours_key` ON `request_hours` (`key_id`,`hour`);
--> statement-breakpoint
INSERT INTO `request_spans` SELECT `span_hours`, 'client', `start`, '', sum(`requests`), sum(`errors`), sum(`cancelled`),
	sum(`input_tokens`), sum(`cached_input_tokens`), sum(`output_tokens`), sum(`cost_micros`), sum(`unpriced`), 0
FROM `request_spans` WHERE `dimension` = 'model' GROUP BY `span_hours`, `start`;
