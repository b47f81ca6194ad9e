/** `sluice keys test`: sends one small request with a key to the running server, as a client would. */
import { commit, type Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { systemClock } from '../lib/clock.ts'
import { getObject, getObjects, getText, isObject, parseJson } from '../lib/json.ts'
import { systemRandom } from '../lib/random.ts'
import { accountNames } from '../model/accounts/account-names.ts'
import { append } from '../model/audit/audit.ts'
import { hashKey, listKeys, type StoredKey } from '../model/keys/api-keys.ts'
import { keyTurn } from '../model/keys/key-turn.ts'
import { type CliIo, cliActor, getConfig, printJson, type Run, withFolder } from './command.ts'
import { findOne } from './find.ts'
import { KEY } from './keys.ts'
import { callOwnServer, ownUrl } from './own-server.ts'
import { readSecret } from './secret.ts'

const TIMEOUT_MS = 60_000

/** Only a key's hash is stored, so the key itself must be given. Exit code 1 when the request fails. */
export const testKey: Run<{ model?: string; json?: true }> = (io, [wanted], { model, json }) =>
  withFolder(io, async ({ db }) => {
    const named = wanted === undefined ? null : findOne(KEY, await KEY.all(db), wanted)
    const key = (await readSecret(io, 'API key: ')).trim()
    const row = await storedKey(db, key, named)
    const result = await send(io, db, { row, key, model: model ?? row.enforcedModel ?? (await firstModel(io, key)) })
    if (json) printJson(io, { keyId: row.id, keyName: row.name, ...result })
    else if (result.error === null) io.stdout(`${success(row, result)}\n`)
    else io.stderr(`sluice: The request with the key "${row.name}" failed: ${result.error}\n`)
    return result.error === null ? 0 : 1
  })

const storedKey = async (db: Db, key: string, named: StoredKey | null): Promise<StoredKey> => {
  if (key === '') throw new AppError('validation_error', { message: 'No key was given. Paste it, or pipe it in.' })
  const hash = hashKey(key)
  const row = (await listKeys(db, 'all')).find(({ keyHash }) => keyHash === hash)
  if (!row)
    throw new AppError('not_found', { message: 'There is no such key here. It may have been regenerated or deleted.' })
  if (named !== null && named.id !== row.id)
    throw new AppError('validation_error', { message: `This is the key "${row.name}", not "${named.name}".` })
  return row
}

/** The first model available to the key. Throws when there is none, or the server does not answer. */
const firstModel = async (io: CliIo, key: string): Promise<string> => {
  const { status, text } = await ask(io, { path: '/v1/models', headers: bearer(key) })
  const [first] = getObjects(getObject(parseJson(text)).data)
  if (status === 200 && first) return getText(first.id)
  const reason = status === 200 ? 'No model is known yet: add an account first.' : failureIn(text, status)
  throw new AppError('no_accounts', { message: reason })
}

interface Sent {
  row: StoredKey
  key: string
  model: string
}

const send = async (io: CliIo, db: Db, { row, key, model }: Sent) => {
  const requestId = systemRandom.id('test')
  const startedAt = systemClock.now()
  await commit(db, (tx) => append(tx, cliActor(), 'api_key_tested', { target: row.id, details: { name: row.name } }))
  const { status, text } = await ask(io, {
    path: '/v1/responses',
    json: { model, input: 'Reply with the single word: ok' },
    headers: { ...bearer(key), 'x-request-id': requestId, 'user-agent': 'sluice-key-test' },
  })
  const error = status === 200 ? null : failureIn(text, status)
  const turn = await logged(db, { keyId: row.id, requestId, startedAt })
  return {
    model,
    requestId,
    account: turn?.accountId ? ((await accountNames(db, { hidesAccounts: false })).get(turn.accountId) ?? null) : null,
    totalMs: Math.round(turn?.totalMs ?? systemClock.now() - startedAt),
    outputTokens: turn?.outputTokens ?? null,
    error,
  }
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const ask = async (io: CliIo, call: Omit<Parameters<typeof callOwnServer>[1], 'timeoutMs'>) => {
  const config = getConfig(io)
  const answer = await callOwnServer(config, { ...call, timeoutMs: TIMEOUT_MS })
  if (typeof answer !== 'string') return answer
  const message = `The server at ${ownUrl(config)} did not answer: ${answer}. Start it with "sluice serve".`
  throw new AppError('upstream_unreachable', { message })
}

const failureIn = (text: string, status: number): string => {
  const error = getObject(parseJson(text)).error
  const message = isObject(error) ? getText(error.message) : ''
  const code = isObject(error) ? getText(error.code) : ''
  return `${message || 'The server gave no reason.'} (${code === '' ? '' : `${code}, `}HTTP ${status})`
}

/** The server writes its log a moment after the answer. */
const LOG_TRIES = 20
const LOG_PAUSE_MS = 100

const logged = async (
  db: Db,
  { keyId, requestId, startedAt }: { keyId: string; requestId: string; startedAt: number },
) => {
  for (let tries = 0; tries < LOG_TRIES; tries++) {
    const turn = await keyTurn(db, keyId, requestId, startedAt)
    if (turn) return turn
    await systemClock.sleep(LOG_PAUSE_MS)
  }
  return undefined
}

const success = ({ name }: StoredKey, result: Awaited<ReturnType<typeof send>>): string => {
  const { model, account, totalMs } = result
  return `The key "${name}" works: ${model} answered${account ? ` from ${account}` : ''} in ${(totalMs / 1000).toFixed(2)} s.`
}
