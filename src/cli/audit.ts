/** `sluice audit verify`: proves that the audit log is whole, or names the first row that shows it is not. */
import { type AuditVerdict, verifyAuditLog } from '../model/audit-verify.ts'
import { plural } from '../model/pool-words.ts'
import { type Command, dispatch, noArguments, printJson, readArgs, withFolder } from './command.ts'

/** Exit code 1 when the log is broken. */
const verify: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
  noArguments(positionals)
  return withFolder(io, ({ db, sqlite }) => {
    // One snapshot: a running server may write, and purge, while the rows are read.
    const verdict = sqlite.transaction(() => verifyAuditLog(db))()
    if (values.json) printJson(io, verdict)
    else io.stdout(`${sentence(verdict)}\n`)
    return verdict.isWhole ? 0 : 1
  })
}

const sentence = (verdict: AuditVerdict): string => {
  if (!verdict.isWhole) {
    const { rowId, problem } = verdict
    return rowId === null ? `BROKEN: ${problem}.` : `BROKEN at row ${rowId}: ${problem}.`
  }
  const { rows, unchained, purgedThroughId } = verdict
  return [
    `OK: ${plural(rows, 'row')}`,
    ...(unchained > 0 ? [`${unchained} of them written by a release without hashes`] : []),
    ...(purgedThroughId === null ? [] : [`purged up to row ${purgedThroughId}`]),
  ].join(', ')
}

export const audit: Command = dispatch('audit', { verify })
