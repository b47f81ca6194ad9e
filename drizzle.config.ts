/** Where `bun run db:generate` reads the tables and writes SQL. */
import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'sqlite',
  casing: 'snake_case',
  schema: './db/schema/all.ts',
  out: './db/migrations',
})
