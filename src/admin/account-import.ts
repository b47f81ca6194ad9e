/** `POST /api/accounts/import`: one or several `auth.json` files of the native client. */
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { commit } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { type AuthFile, type ImportFailure, readAuthFiles, importAccounts as store } from '../model/account-import.ts'
import type { ImportedRow } from '../model/accounts.ts'

const MAX_BYTES = 32 * 1024 * 1024
const FIELD = 'auth_json'

const atMost32MiB = bodyLimit({
  maxSize: MAX_BYTES,
  onError: () => {
    throw new AppError('payload_too_large')
  },
})

/**
 * Keeps the good files in one commit. One file is answered with its account, several with `{accounts, failures}`.
 * Throws `invalid_auth_json`, naming file and reason, when none is good.
 */
export const importAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_imported' }),
  atMost32MiB,
  async (c) => {
    const { db, sealer, random } = c.env
    const files = await uploads(c)
    c.var.passAgain()
    const { accounts, failures } = readAuthFiles(files)
    if (accounts.length === 0) throw allBad(failures)
    const doing = { sealer, random, actor: actor(c) }
    const rows = commit(db, (tx) => store(tx, accounts, doing)).map(answerFor)
    return c.json(files.length === 1 ? rows[0]! : { accounts: rows, failures }) // one good file is one row
  },
)

const uploads = async (c: Context<AppEnv>): Promise<AuthFile[]> => {
  const form = await c.req.parseBody({ all: true }).catch((cause: unknown) => {
    if (cause instanceof AppError) throw cause
    throw new AppError('invalid_auth_json', { message: 'The upload is not a valid multipart form.', cause })
  })
  const parts = [form[FIELD] ?? []].flat()
  if (parts.length === 0)
    throw new AppError('invalid_auth_json', { message: `Send the file in the field ${FIELD}.`, param: FIELD })
  return Promise.all(
    parts.map(async (part) =>
      typeof part === 'string' ? { name: 'auth.json', text: part } : { name: part.name, text: await part.text() },
    ),
  )
}

const allBad = (failures: readonly ImportFailure[]): AppError =>
  new AppError('invalid_auth_json', {
    message: failures.map(({ message }) => message).join('; '),
    param: failures[0]?.file,
    details: { failures },
  })

const answerFor = ({ id: accountId, email, workspaceId, workspaceLabel, seatType, planType, ...row }: ImportedRow) => ({
  accountId,
  email,
  workspaceId,
  workspaceLabel,
  seatType,
  planType,
  status: row.status,
  tokensKept: row.tokensKept,
})
