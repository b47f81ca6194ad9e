/** `/api/accounts/:id/export/auth`, `/api/accounts/export`: exports credentials, after a confirmation. */
import { z } from 'zod'
import { commit, type Tx } from '../../../db/commit.ts'
import { ExportedPage } from '../../../views/accounts/exported.tsx'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { reply } from '../../http/reply.tsx'
import { representation } from '../../http/representation.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { getZip } from '../../lib/zip-write.ts'
import {
  codexAuthJson,
  EXPORT_FORMATS,
  type ExportFormat,
  exportedAuth,
  fileNameFor,
  opencodeAuthJson,
} from '../../model/accounts/account-export.ts'
import { openTokens, UNREADABLE_TOKENS } from '../../model/accounts/account-tokens.ts'
import { type AccountRow, displayName, getAccount } from '../../model/accounts/accounts.ts'
import type { AccountTokens } from '../../model/accounts/auth-json.ts'
import { append } from '../../model/audit/audit.ts'

const Format = z.strictObject({
  format: z
    .enum(EXPORT_FORMATS)
    .default('codex')
    .describe('File format for browsers. Other clients get all formats in one response.'),
})

/**
 * With htmx a dialog shows the file; otherwise the browser downloads it. Throws `account_not_found`,
 * `account_state_transition_invalid`.
 */
export const exportAuth = createHandlers(
  requires('accounts:export', { stepUp: true, audit: 'account_exported' }),
  body(Format),
  async (c) => {
    const { format } = c.req.valid('json')
    const { row, tokens } = await commit(c.env.db, (tx) => taken(c, tx, { id: getPathId(c), format }))
    const kind = representation(c)
    if (kind === 'json') return c.json(exportedAuth(row, tokens))
    const file = { filename: fileNameFor(row, format), text: getText(row, tokens, format) }
    if (kind === 'fragment') return reply(c, file, ExportedPage)
    return c.body(file.text, 200, {
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': `attachment; filename="${file.filename}"`,
    })
  },
)

const Several = Format.extend({
  accountIds: z.array(z.string().max(255)).min(1).max(1000).describe('The accounts to export.'),
})

/** Several accounts as a ZIP archive of one file each. Throws `account_not_found`, `account_state_transition_invalid`. */
export const exportAccounts = createHandlers(
  requires('accounts:export', { stepUp: true, audit: 'account_exported' }),
  body(Several),
  async (c) => {
    const { accountIds, format } = c.req.valid('json')
    const files = await commit(c.env.db, (tx) =>
      mapInOrder([...new Set(accountIds)], async (id) => {
        const { row, tokens } = await taken(c, tx, { id, format })
        return { name: `${id}/${fileNameFor(row, format)}`, text: getText(row, tokens, format) }
      }),
    )
    return c.body(getZip(files), 200, {
      'content-type': 'application/zip',
      'content-disposition': 'attachment; filename="accounts.zip"',
    })
  },
)

const taken = async (
  c: Ctx,
  tx: Tx,
  { id, format }: { id: string; format: ExportFormat },
): Promise<{ row: AccountRow; tokens: AccountTokens }> => {
  const row = await getAccount(tx, id)
  const tokens = openTokens(c.env.sealer, row)
  if (tokens === UNREADABLE_TOKENS)
    throw new AppError('account_state_transition_invalid', {
      message: `The stored tokens of ${displayName(row)} cannot be read. Sign in again.`,
    })
  await append(tx, actor(c), 'account_exported', { target: row.id, details: { format } })
  return { row, tokens }
}

const getText = (row: AccountRow, tokens: AccountTokens, format: ExportFormat): string =>
  `${JSON.stringify(format === 'codex' ? codexAuthJson(row, tokens) : opencodeAuthJson(row, tokens), null, 2)}\n`
