DROP INDEX `accounts_identity`;--> statement-breakpoint
CREATE INDEX `accounts_seat` ON `accounts` (`chatgpt_account_id`,`chatgpt_user_id`);