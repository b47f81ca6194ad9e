CREATE TABLE `request_digests` (
	`hour` integer PRIMARY KEY NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	`first_token` text NOT NULL,
	`speed` text NOT NULL,
	`conversations` text NOT NULL
);
