/** `sluice audit verify`: checks that the audit log is complete and unchanged, or names the first row that is not. */
import { atOneMoment } from '../../db/commit.ts'
import { type AuditVerdict, verifyAuditLog } from '../model/audit/audit-verify.ts'
import { printJson, type Run, withFolder } from './command.ts'

/** Exit code 1 when verification fails. */
export const verifyAudit: Run = (io, _args, { json }) =>
  withFolder(io, async ({ db }) => {
    const verdict = await atOneMoment(db, verifyAuditLog) // a running server may write and purge at the same time
    if (json) printJson(io, verdict)
    else io.stdout(`${sentence(verdict)}\n`)
    return verdict.isWhole ? 0 : 1
  })

const sentence = (verdict: AuditVerdict): string => {
  if (!verdict.isWhole) {
    const { rowId, problem } = verdict
    return rowId === null ? `Broken: ${problem}.` : `Broken at entry ${rowId}: ${problem}.`
  }
  const { rows, unchained, purgedThroughId } = verdict
  return [
    `Verified: ${rows} ${rows === 1 ? 'entry' : 'entries'}, unbroken chain`,
    ...(unchained > 0 ? [`${unchained} written by a release without hashes`] : []),
    ...(purgedThroughId === null ? [] : [`deleted up to entry ${purgedThroughId}`]),
  ].join(', ')
}
