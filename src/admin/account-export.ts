/** `/api/accounts/:id/export/auth`: the credentials of one account, after a confirmation, for use in another program. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { ExportedPage } from '../../views/accounts/exported.tsx'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { idOf } from '../http/path-id.ts'
import { reply, representation } from '../http/reply.tsx'
import {
  codexAuthJson,
  EXPORT_FORMATS,
  type ExportFormat,
  exportedAuth,
  fileNameFor,
  opencodeAuthJson,
} from '../model/account-export.ts'
import { openTokens, UNREADABLE_TOKENS } from '../model/account-tokens.ts'
import { type AccountRow, getAccount } from '../model/accounts.ts'
import { append } from '../model/audit.ts'
import type { AccountTokens } from '../model/auth-json.ts'

const Format = z.strictObject({
  format: z.enum(EXPORT_FORMATS).default('codex').describe('Of the file for a browser; other clients get all at once.'),
})

/** A browser without script downloads the file; htmx is shown it. Throws `account_not_found`, `account_state_transition_invalid`. */
export const exportAuth = createHandlers(
  requires('accounts:export', { stepUp: true, audit: 'account_exported' }),
  body(Format),
  (c) => {
    const { format } = c.req.valid('json')
    const { row, tokens } = taken(c, format)
    const kind = representation(c)
    if (kind === 'json') return c.json(exportedAuth(row, tokens))
    const file = { filename: fileNameFor(row, format), text: textOf(row, tokens, format) }
    if (kind === 'fragment') return reply(c, file, ExportedPage)
    return c.body(file.text, 200, {
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': `attachment; filename="${file.filename}"`,
    })
  },
)

const taken = (c: Ctx, format: ExportFormat): { row: AccountRow; tokens: AccountTokens } => {
  const { db, sealer } = c.env
  const who = actor(c)
  return commit(db, (tx) => {
    const row = getAccount(tx, idOf(c))
    const tokens = openTokens(sealer, row)
    if (tokens === UNREADABLE_TOKENS)
      throw new AppError('account_state_transition_invalid', {
        message: 'Its stored tokens cannot be read; sign it in again.',
      })
    append(tx, who, 'account_exported', { target: row.id, details: { format } })
    return { row, tokens }
  })
}

const textOf = (row: AccountRow, tokens: AccountTokens, format: ExportFormat): string =>
  `${JSON.stringify(format === 'codex' ? codexAuthJson(row, tokens) : opencodeAuthJson(row, tokens), null, 2)}\n`
