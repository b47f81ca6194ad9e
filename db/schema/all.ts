/** Every table, for drizzle's schema argument and the migration generator. */
export * from './accounts.ts'
export * from './history.ts'
export * from './keys.ts'
export * from './live-calls.ts'
export * from './people.ts'
export * from './rejections.ts'
export * from './requests.ts'
export * from './system.ts'
