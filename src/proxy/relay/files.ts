/**
 * Files for model requests: the client announces one, uploads it to the address ChatGPT names, and finalizes it. The bytes never
 * pass through Sluice. Assumed: only the account that announced a file can finalize and read it, and both routes take JSON and
 * only the smallest set of headers. Names of files are not logged.
 */
import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { getObject, getText, parseJson } from '../../lib/json.ts'
import { decodeUtf8, encodeUtf8 } from '../../lib/utf8.ts'
import { type Answered, answerHeaders, withServerTiming } from '../downstream/answer.ts'
import { parseAt } from '../formats/invalid-request.ts'
import { parseObject } from '../ingress/raw-body.ts'
import { beginWith } from '../turn/begin.ts'
import { fileOwner, rememberFile } from '../turn/continuity.ts'
import { newProgress } from '../turn/progress.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import type { RelayPlan } from './plan.ts'
import { admitRelay, exchangeOnce, openRelay, preparedFor, type RelayRequest, readBodyFor, turnRoute } from './relay.ts'
import type { RelayFlow } from './relay-flow.ts'

const TIMEOUT_MS = 60_000
const POLL_MS = 250
const POLL_FOR_MS = 30_000
const MAX_BODY_BYTES = 64 * 1024
const MAX_ANSWER_BYTES = 256 * 1024
const MAX_FILE_BYTES = 512 * 1024 * 1024

const SIZE = `must be a whole number of bytes from 1 to ${MAX_FILE_BYTES}`
const NewFile = z.object({
  file_name: z.string('must be a string').min(1, 'must not be empty'),
  file_size: z.int(SIZE).min(1, SIZE).max(MAX_FILE_BYTES, SIZE),
  use_case: z.literal('codex', "must be 'codex'"),
})

const requestFor = (
  { path, route, model }: Pick<RelayRequest, 'path' | 'route' | 'model'>,
  plan: Pick<RelayPlan, 'retry'> & Partial<RelayPlan>,
): RelayRequest => ({
  kind: 'file',
  surface: 'file',
  isNative: true,
  path,
  ...(route !== undefined && { route }),
  accept: 'application/json',
  model,
  ignoresAllowlist: true,
  headers: 'smallest',
  plan: {
    method: 'POST',
    contentType: 'application/json',
    timeoutMs: TIMEOUT_MS,
    isBlockedByPages: true,
    ...plan,
  },
})

const CREATE = requestFor({ path: '/files', model: 'files-create' }, { retry: 'before-sent' })

export const createFile = turnRoute(async (c) => {
  const body = await readBodyFor(c, CREATE, MAX_BODY_BYTES)
  preparedFor(c, body, CREATE, () => parseAt(NewFile, parseObject(body.bytes)))
  const served = await admitRelay(c, CREATE, body)
  const answer: Promise<Response> = created({ ...served, answer: () => answer })
  return answer
})

const created = async (served: Answered): Promise<Response> => {
  const { turn, env } = served
  const flow = await openRelay(served)
  const bytes = await flow.bytes(MAX_ANSWER_BYTES)
  const fileId = getText(toMember(bytes, 'file_id'))
  const { accountId } = flow
  if (fileId !== '' && env.pool.get(accountId)) {
    const row = rememberFile(getDeps(served), { fileId, accountId })
    if (row) turn.log.owned.push(row)
  }
  return getResponse(served, flow, bytes)
}

const finalizeRequest = (c: Ctx): { request: RelayRequest; fileId: string; owner: string | null } => {
  const fileId = c.req.param('id') ?? ''
  const keyId = c.get('client').key?.id ?? null
  const owner = fileOwner({ affinity: c.env.affinity, now: c.env.clock.now(), keyId }, fileId)
  const names = { path: `/files/${encodeURIComponent(fileId)}/uploaded`, route: '/backend-api/files/{id}/uploaded' }
  const request = requestFor(
    { ...names, model: 'files-finalize' },
    {
      retry: 'idempotent',
      isRepeated: true,
      passesErrors: true,
      owner: { id: owner ?? UNKNOWN, hard: true, hasFiles: true },
    },
  )
  return { request, fileId, owner }
}

/** No account has this id, so none can be chosen. */
const UNKNOWN = ''

export const finalizeFile = turnRoute(async (c) => {
  const { request, fileId, owner } = finalizeRequest(c)
  const { hold } = await readBodyFor(c, request, MAX_BODY_BYTES) // clients send none, or an empty object
  hold.resize(EMPTY.length)
  const served = await admitRelay(c, request, { bytes: EMPTY, json: {}, hold })
  const row = owner === null ? null : rememberFile(getDeps(served), { fileId, accountId: owner })
  if (row) served.turn.log.owned.push(row)
  const { flow, bytes } = await withServerTiming(
    served,
    beginWith(served, { headers: false }, (proxyDeps, turn) => finalized(proxyDeps, turn)),
  )
  return getResponse(served, flow, bytes)
})

const EMPTY = encodeUtf8('{}')

/** Asks until the file is ready, and at most for 30 s: then the last answer is passed on. */
const finalized = async (proxyDeps: ProxyDeps, turn: Turn) => {
  const { clock } = proxyDeps
  const { deadline } = newProgress(proxyDeps, turn)
  const until = clock.monotonic() + POLL_FOR_MS
  for (;;) {
    const flow = await exchangeOnce(proxyDeps, turn, { ...newProgress(proxyDeps, turn), deadline })
    const bytes = await flow.bytes(MAX_ANSWER_BYTES)
    const isPending = toMember(bytes, 'status') === 'retry'
    if (!isPending || clock.monotonic() + POLL_MS > until)
      return { flow, bytes, whenEnded: (listener: Parameters<RelayFlow['whenEnded']>[0]) => flow.whenEnded(listener) }
    await clock.sleep(POLL_MS, turn.signal)
    turn.log.attempts.pop() // the log keeps the last answer
  }
}

const toMember = (bytes: Uint8Array, name: string): unknown => getObject(parseJson(decodeUtf8(bytes)))[name]

const getDeps = ({ env, turn }: Answered) => ({
  affinity: env.affinity,
  now: env.clock.now(),
  keyId: turn.client.key?.id ?? null,
})

const getResponse = (served: Answered, flow: RelayFlow, bytes: Uint8Array): Response =>
  new Response(new Uint8Array(bytes), { status: flow.status, headers: answerHeaders(served, flow) })
