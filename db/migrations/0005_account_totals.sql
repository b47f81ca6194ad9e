CREATE TABLE `account_totals` (
	`account_id` text PRIMARY KEY NOT NULL,
	`requests` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cost_micros` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
INSERT INTO `account_totals` (`account_id`, `requests`, `input_tokens`, `cached_input_tokens`, `output_tokens`, `cost_micros`)
SELECT `account_id`, sum(`requests`), sum(`input_tokens`), sum(`cached_input_tokens`), sum(`output_tokens`), sum(`cost_micros`)
FROM `request_hours` WHERE `account_id` IN (SELECT `id` FROM `accounts`) GROUP BY `account_id`;