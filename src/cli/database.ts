/** `sluice database copy`: moves the database to PostgreSQL or back. */
import { systemClock } from '../lib/clock.ts'
import { plural } from '../model/overview/pool-words.ts'
import { copyDatabase, isUrl } from '../ops/database-copy.ts'
import { printJson, type Run, UsageError } from './command.ts'
import { table } from './table.ts'

interface CopyOptions {
  from?: string
  to?: string
  json?: true
}

export const copy: Run<CopyOptions> = async (io, _args, { from, to, json }) => {
  if (!from || !to) throw new UsageError('Both --from and --to are needed: a data folder, a file or postgres://….')
  const copied = await copyDatabase({ from, to, now: systemClock.now() })
  if (json) {
    printJson(io, copied)
    return 0
  }
  io.stdout(
    table(
      ['TABLE', 'ROWS'],
      copied.tables.map(({ name, rows }) => [name, String(rows)]),
    ),
  )
  const rows = copied.tables.reduce((sum, one) => sum + one.rows, 0)
  io.stdout(`Copied ${plural(rows, 'row')}. Every table has the same number of rows in both.\n`)
  if (copied.adjusted > 0)
    io.stderr(
      `${plural(copied.adjusted, 'value')} could not be stored unchanged: PostgreSQL has no NUL characters in text and ` +
        'no fractions in columns of integers.\n',
    )
  io.stderr(
    'The encryption key is not copied. Tokens can only be decrypted with the file encryption.key of the source.\n',
  )
  io.stderr(
    isUrl(to)
      ? 'To use the copy, set SLUICE_DATABASE_URL to it and start the server.\n'
      : 'To use the copy, remove SLUICE_DATABASE_URL and start the server with this data folder.\n',
  )
  return 0
}
