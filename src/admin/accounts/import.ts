/** `/api/accounts/import`: one or several `auth.json` files of the Codex CLI, imported directly or after a preview. */
import { z } from 'zod'
import { commit, notice } from '../../../db/commit.ts'
import type { ImportValue, PreflightFile } from '../../../views/accounts/new-import.tsx'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body, maxBody, readForm } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { Flag, query } from '../../http/query.ts'
import { representation } from '../../http/representation.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { inSlices } from '../../lib/slices.ts'
import type { ZipBudget } from '../../lib/zip.ts'
import {
  type ImportFailure,
  mergeByAccount,
  readAuthFiles,
  importAccounts as store,
} from '../../model/accounts/account-import.ts'
import type { ImportedRow } from '../../model/accounts/account-intake.ts'
import { displayName } from '../../model/accounts/accounts.ts'
import {
  asAuthFiles,
  importBudget,
  MAX_IMPORT_BYTES,
  MAX_IMPORT_FILES,
  type OpenedFiles,
  openFile,
} from '../../model/accounts/auth-files.ts'
import type { ImportedAccount } from '../../model/accounts/auth-json.ts'
import {
  checkFiles,
  type Draft,
  type ImportOutcome,
  isWorthwhile,
  type PreflightEntry,
} from '../../model/accounts/import-preflight.ts'
import { replyWithImport } from './new-reply.tsx'

const FIELD = 'auth_json'

/**
 * Stores the valid files. Answers one file with its account, several with `{accounts, failures}`. Throws
 * `invalid_auth_json`, naming file and reason, when none is valid.
 */
export const importAccounts = createHandlers(
  requires('accounts:write', { audit: 'account_imported' }),
  maxBody(MAX_IMPORT_BYTES),
  async (c) => {
    const uploaded = await uploads(c)
    await c.var.passAgain(c)
    const read = await inSlices(c.env.clock, uploaded.files, async (slice) => [readAuthFiles(slice)])
    const accounts = read.flatMap((slice) => slice.accounts)
    const failures = [...uploaded.failures, ...read.flatMap((slice) => slice.failures)]
    if (accounts.length === 0) throw allBad(failures)
    const rows = (await keep(c, accounts)).map(answerFor)
    const isOne = uploaded.files.length + uploaded.failures.length === 1
    return c.json(isOne ? rows[0]! : { accounts: rows, failures }) // one valid file gives one row
  },
)

/** In several commits, because streams wait during each. One notice at the end, because each reloads the whole table. */
const keep = async (c: Ctx, accounts: readonly ImportedAccount[]): Promise<ImportedRow[]> => {
  const { db, sealer, random, clock } = c.env
  const doing = { sealer, random, actor: actor(c), announcesLater: true }
  try {
    return mergeByAccount(await inSlices(clock, accounts, (slice) => commit(db, (tx) => store(tx, slice, doing))))
  } finally {
    await commit(db, async (tx) => notice(tx, 'accounts'))
  }
}

const Preflight = z.object({
  importSingle: Flag.describe('Import right away if it is one file that adds an account or has newer tokens.'),
})

/**
 * Says what importing each file would do, without writing anything. The files are kept for 15 minutes. Throws
 * `invalid_auth_json` in a dialog where no file is valid.
 */
export const preflightImport = createHandlers(
  requires('accounts:write', { audit: 'account_imported' }),
  query(Preflight),
  maxBody(MAX_IMPORT_BYTES),
  async (c) => {
    const { db, sealer, clock, importDrafts } = c.env
    const uploaded = await uploads(c)
    await c.var.passAgain(c)
    const entries = await checkFiles(db, uploaded.files, { sealer, clock, failures: uploaded.failures })
    // With scripts, the form keeps its contents.
    const isInvalid = entries.every(({ verdict }) => verdict === 'broken')
    if (isInvalid && representation(c) === 'fragment') throw allBad(getFailures(entries))
    const draft = importDrafts.keep(c.var.principal.id, { entries, outcome: null })
    const [only] = entries
    if (c.req.valid('query').importSingle && entries.length === 1 && only?.account && isWorthwhile(only))
      await finish(c, draft, [only.account])
    return replyWithImport(c, draftValue(c, draft.id))
  },
)

const getFailures = (entries: readonly PreflightEntry[]): ImportFailure[] =>
  entries.map(({ file, reason }) => ({ file, message: (reason ?? '').replace(/^The file/, file) }))

/** Imports `draft` once, also for parallel calls. If it fails, it can be retried. */
const finish = (c: Ctx, draft: Draft, accounts: readonly ImportedAccount[]): Promise<void> =>
  c.env.importDrafts.update(draft, async (content) =>
    content.outcome
      ? content
      : {
          outcome: (await keep(c, accounts)).map(getOutcome),
          entries: content.entries.map((entry) => ({ ...entry, account: null })),
        },
  )

const Choice = z.strictObject({
  files: z
    .array(z.string().max(8))
    .min(1, 'select at least one file')
    .max(MAX_IMPORT_FILES)
    .describe('The `id`s of the files to import, from the preview.'),
})

/**
 * Imports the selected files of a preview, once: a repeated request returns the same result. Throws `import_not_found`,
 * `validation_error` for a file that is not in this preview or cannot be read.
 */
export const importChosen = createHandlers(
  requires('accounts:write', { audit: 'account_imported' }),
  body(Choice),
  async (c) => {
    const draft = getDraft(c, getPathId(c))
    if (draft.content.outcome === null) {
      const accounts = chosen(draft, c.req.valid('json').files)
      await finish(c, draft, accounts)
    }
    return replyWithImport(c, draftValue(c, draft.id))
  },
)

const chosen = ({ content: { entries } }: Draft, ids: readonly string[]) =>
  [...new Set(ids)].map((id) => {
    const account = entries.find((entry) => entry.id === id)?.account
    if (account) return account
    throw new AppError('validation_error', {
      param: 'files',
      details: { fields: { files: [`${id} is not a readable file of this preview`] } },
    })
  })

/** Throws `import_not_found`. */
export const draftValue = (c: Ctx, id: string): ImportValue => importValue(c, getDraft(c, id))

const getDraft = (c: Ctx, id: string): Draft => {
  const draft = c.env.importDrafts.get(id, c.var.principal.id)
  if (draft === null) throw new AppError('import_not_found')
  return draft
}

const importValue = (c: Ctx, { id: preflightId, expiresAt, content }: Draft): ImportValue => ({
  preflightId,
  expiresAt: iso(expiresAt),
  generatedAt: iso(c.env.clock.now()),
  files: content.entries.map(getFile),
  accounts: content.outcome,
})

const getFile = ({ id, file, verdict, reason, account, existing }: PreflightEntry): PreflightFile => ({
  id,
  file,
  verdict,
  reason,
  isWorthwhile: isWorthwhile({ verdict }),
  email: account?.identity.email ?? null,
  planType: account?.identity.planType ?? null,
  workspaceLabel: account?.identity.workspaceLabel ?? null,
  lastRefreshAt: isoOrNull(account?.lastRefreshAt),
  existing,
})

const getOutcome = (row: ImportedRow): ImportOutcome => ({
  accountId: row.id,
  displayName: displayName(row),
  planType: row.planType,
  tokensKept: row.tokensKept,
  isPaused: row.status === 'paused',
})

/** The files of the form, with archives unpacked. Throws `invalid_auth_json`, and what reading a form does. */
const uploads = async (c: Ctx): Promise<OpenedFiles> => {
  const form = await readForm(c).catch((cause: unknown) => {
    if (cause instanceof AppError) throw cause
    throw new AppError('invalid_auth_json', { message: 'The upload is not a valid multipart form.', cause })
  })
  const parts = [form[FIELD] ?? []]
    .flat()
    .filter((part) => (typeof part === 'string' ? part.trim() !== '' : part.size > 0 || Boolean(part.name)))
  if (parts.length === 0)
    throw new AppError('invalid_auth_json', {
      message: 'Select a file or paste the text of an auth.json.',
      param: FIELD,
    })
  requireFew(parts)
  const budget = importBudget()
  const read: OpenedFiles[] = []
  // sequentially, so that only one is unpacked at a time
  for (const part of parts) read.push(await readPart(part, budget))
  const files = read.flatMap(({ files }) => files)
  requireFew(files)
  return { files, failures: read.flatMap(({ failures }) => failures) }
}

const requireFew = ({ length }: readonly unknown[]): void => {
  if (length > MAX_IMPORT_FILES)
    throw new AppError('invalid_auth_json', {
      message: `You can import at most ${MAX_IMPORT_FILES} files at a time.`,
      param: FIELD,
    })
}

const readPart = async (part: string | File, budget: ZipBudget): Promise<OpenedFiles> => {
  if (typeof part === 'string') return asAuthFiles('The pasted text', part)
  return openFile(part.name || 'auth.json', await part.bytes(), budget) // the runtime gives no name for an empty one
}

const allBad = (failures: readonly ImportFailure[]): AppError =>
  new AppError('invalid_auth_json', {
    message: failures.map(({ message }) => message).join(' '),
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
