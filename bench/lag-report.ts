/**
 * Preloaded into measured servers through BUN_OPTIONS. On SIGUSR1 they write how long they blocked their event loop
 * since the previous signal.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { watchLag } from './lag.ts'

const file = process.env.BENCH_LAG_FILE
if (file && Bun.isMainThread && process.argv.includes('serve')) {
  const lag = watchLag()
  process.on('SIGUSR1', () => {
    writeFileSync(`${file}.new`, JSON.stringify(lag()))
    renameSync(`${file}.new`, file) // atomically
  })
}
