/** `sluice export accounts`: all accounts with their tokens, in a file encrypted with a passphrase. */
import { writeFile } from 'node:fs/promises'
import { commit } from '../../db/commit.ts'
import { systemRandom } from '../lib/random.ts'
import { getStatusUnderPause } from '../model/accounts/account-state.ts'
import { allTags } from '../model/accounts/account-tags.ts'
import { openTokens, UNREADABLE_TOKENS } from '../model/accounts/account-tokens.ts'
import { listAccounts } from '../model/accounts/accounts.ts'
import { append } from '../model/audit/audit.ts'
import { type BundledAccount, MAX_BUNDLED_ACCOUNTS, MIN_PASSPHRASE, sealBundle } from '../model/imports/bundle.ts'
import { plural } from '../model/overview/pool-words.ts'
import { cliActor, type Run, UsageError, withFolder } from './command.ts'
import { readPassphrase } from './import.ts'

interface Options {
  out?: string
  passphraseFile?: string
}

/** Accounts with unusable tokens are left out. The exit code is then 1. */
export const exportAccounts: Run<Options> = async (io, _, { out, passphraseFile }) => {
  if (!out) throw new UsageError('Set the file to write with --out FILE.')
  if (!passphraseFile) throw new UsageError('Set the file with the passphrase with --passphrase-file FILE.')
  const passphrase = await readPassphrase(passphraseFile)
  if (passphrase.length < MIN_PASSPHRASE)
    throw new UsageError(`The passphrase needs at least ${MIN_PASSPHRASE} characters.`)
  return withFolder(io, async ({ db, sealer }) => {
    const tags = await allTags(db)
    const rows = await listAccounts(db)
    if (rows.length > MAX_BUNDLED_ACCOUNTS)
      throw new UsageError(`A file can have at most ${MAX_BUNDLED_ACCOUNTS} accounts.`)
    const accounts = rows.flatMap((row): (BundledAccount & { id: string })[] => {
      const tokens = openTokens(sealer, row)
      if (tokens === UNREADABLE_TOKENS || getStatusUnderPause(row) === 'reauth_required') return []
      const { id, lastRefreshAt, alias, routingPolicy, securityWorkAuthorized } = row
      const { email, chatgptAccountId, chatgptUserId, planType, workspaceId, workspaceLabel, seatType } = row
      const identity = { email, chatgptAccountId, chatgptUserId, planType, workspaceId, workspaceLabel, seatType }
      const isPaused = row.status === 'paused'
      const policy = { alias, routingPolicy, securityWorkAuthorized, tags: tags.get(id) ?? [], isPaused }
      return [{ id, identity, tokens, lastRefreshAt, ...policy }]
    })
    const text = await sealBundle(
      accounts.map(({ id, ...account }) => account),
      passphrase,
      systemRandom,
    )
    await writeFile(out, text, { mode: 0o600, flag: 'wx' }).catch((cause: unknown) => {
      const code = cause instanceof Error && 'code' in cause ? cause.code : String(cause)
      throw new UsageError(code === 'EEXIST' ? `${out} already exists.` : `${out} cannot be written (${code}).`)
    })
    await commit(db, async (tx) => {
      for (const { id } of accounts)
        await append(tx, cliActor(), 'account_exported', { target: id, details: { format: 'sluice' } })
    })
    io.stdout(
      `Exported ${plural(accounts.length, 'account')} to ${out}. Stop using them here before you use them there.\n`,
    )
    const left = rows.length - accounts.length
    if (left > 0) io.stderr(`sluice: ${plural(left, 'account')} left out, because they need sign-in.\n`)
    return left > 0 ? 1 : 0
  })
}
