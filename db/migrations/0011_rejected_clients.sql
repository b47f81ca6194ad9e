CREATE TABLE `rejected_clients` (
	`id` integer PRIMARY KEY NOT NULL,
	`minute` integer NOT NULL,
	`client` text NOT NULL,
	`reason` text NOT NULL,
	`count` integer NOT NULL,
	`last_at` integer NOT NULL,
	`key_start` text,
	`key_id` text,
	`model` text,
	`route` text NOT NULL,
	`user_agent` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `rejected_clients_place` ON `rejected_clients` (`minute`,`client`,`reason`);