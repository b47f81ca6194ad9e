/** Calls to model sources: to allowed addresses only, checked again at each connection, without redirects. */
import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { AppError } from '../errors.ts'
import { SealError } from '../lib/seal.ts'
import { NOT_FOR_AN_ACCOUNT } from '../model/egress/route.ts'
import type { Source } from '../model/sources/sources.ts'
import type { Dial } from './dial.ts'
import { getForms, problemOfAddress, problemOfName } from './source-address.ts'

/** All addresses of a host name. Rejects when it has none. */
export type Lookup = (hostname: string) => Promise<readonly string[]>

interface SourceFetchDeps {
  dial: Pick<Dial, 'fetchAt' | 'isProxied'>
  lookup: Lookup
  /** Where this server listens: calls there would come back. */
  own: () => { port: number; publicUrl: string | undefined }
}

interface SourceCall {
  /** Under the base URL: `/models`. */
  path: string
  /** Absent: GET. */
  body?: Exclude<BodyInit, ReadableStream>
  contentType?: string
  accept: string
  signal: AbortSignal
}

export class SourceFetch {
  readonly #deps: SourceFetchDeps

  constructor(deps: SourceFetchDeps) {
    this.#deps = deps
  }

  /** Why there can be no source at `baseUrl` (as `getBaseUrl` returns it); null: there can, as far as is known. */
  async getProblem(baseUrl: string): Promise<string | null> {
    return (await this.#resolved(new URL(baseUrl))).problem
  }

  /**
   * The answer of the source, whatever its status, with the headers Accept, Content-Type and Authorization of the source.
   * Its body may be compressed. Throws `model_source_unreachable`, `model_source_error` for a redirect,
   * `model_source_credentials_error` for a key that cannot be decrypted, and the reason of an aborted signal.
   */
  readonly fetch = async (source: Pick<Source, 'baseUrl' | 'key'>, call: SourceCall): Promise<Response> => {
    const url = source.baseUrl + call.path
    const { problem, addresses } = await this.#resolved(new URL(url))
    call.signal.throwIfAborted()
    if (problem !== null) throw new AppError('model_source_unreachable', { message: problem })
    const response = await this.#getFirst(addresses, url, getInit(toKey(source), call))
    if (response.status < 300 || response.status > 399 || response.status === 304) return response
    void response.body?.cancel().catch(() => {}) // an unread body keeps its connection
    throw new AppError('model_source_error', {
      message: 'The model source answered with a redirect, which is not followed. Use the address it redirects to.',
    })
  }

  /** Tries the next address after a refused connection: `localhost` can have two. */
  async #getFirst(addresses: readonly string[], url: string, init: RequestInit): Promise<Response> {
    let cause: unknown = new Error('The host name could not be resolved.')
    for (const address of addresses) {
      try {
        return await this.#deps.dial.fetchAt(url, address, init)
      } catch (err) {
        if (init.signal?.aborted) throw init.signal.reason
        cause = err
        if (!isRefused(err)) break
      }
    }
    const ofProxy = cause instanceof AppError ? { message: cause.message } : {}
    throw new AppError('model_source_unreachable', { ...ofProxy, cause })
  }

  /** A host with any address that is not allowed is not allowed: the next connection could use that one. */
  async #resolved(url: URL): Promise<{ problem: string | null; addresses: readonly string[] }> {
    const hostname = url.hostname.replace(/^\[|\]$/g, '')
    const problem = problemOfName(hostname) ?? this.#problemOfOrigin(url)
    if (problem !== null) return { problem, addresses: [] }
    const found = isIP(hostname) ? [hostname] : await this.#deps.lookup(hostname).catch(() => [])
    const wrong = found.map((address) => problemOfAddress(address) ?? this.#problemOfOwn(address, url))
    // A proxy resolves names itself, also those that cannot be resolved here.
    const addresses = this.#deps.dial.isProxied(url.href, NOT_FOR_AN_ACCOUNT) ? [hostname] : found
    return { problem: wrong.find((text) => text !== null) ?? null, addresses }
  }

  #problemOfOrigin(url: URL): string | null {
    const { publicUrl } = this.#deps.own()
    return publicUrl !== undefined && isSamePlace(url, new URL(publicUrl)) ? OWN_PROBLEM : null
  }

  #problemOfOwn(address: string, url: URL): string | null {
    if (getPort(url) !== this.#deps.own().port) return null
    const own = ownAddresses()
    return getForms(address).some((form) => isLoopback(form) || own.has(form)) ? OWN_PROBLEM : null
  }
}

export const createLookup = (): Lookup => async (hostname) =>
  (await systemLookup(hostname, { all: true })).map(({ address }) => address)

const OWN_PROBLEM = 'This is the address of Sluice itself, which cannot be its own model source.'

const getInit = (key: string | null, { body, contentType, accept, signal }: SourceCall): RequestInit => ({
  headers: {
    accept,
    'accept-encoding': 'identity',
    ...(contentType !== undefined && { 'content-type': contentType }),
    ...(key !== null && { authorization: `Bearer ${key}` }),
  },
  ...(body !== undefined && { method: 'POST', body }),
  signal,
})

const toKey = ({ key }: Pick<Source, 'key'>): string | null => {
  try {
    return key()
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause
    throw new AppError('model_source_credentials_error', {
      message: 'The API key of the model source cannot be decrypted. Set it again.',
      cause,
    })
  }
}

/** Whichever of `http:` and `https:` it is, and with or without the dot at the end of the name. */
const isSamePlace = (a: URL, b: URL): boolean =>
  getHost(a) === getHost(b) && (getPort(a) === getPort(b) || (a.port === '' && b.port === ''))

const getHost = ({ hostname }: URL): string => hostname.replace(/\.$/, '')

const getPort = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)

const isLoopback = (address: string): boolean =>
  /^127\./.test(address) || address === '::1' || address === '0.0.0.0' || address === '::'

const ownAddresses = (): ReadonlySet<string> =>
  new Set(Object.values(networkInterfaces()).flatMap((list = []) => list.flatMap(({ address }) => getForms(address))))

const REFUSALS: readonly unknown[] = [
  'ECONNREFUSED',
  'ConnectionRefused',
  'FailedToOpenSocket',
  'EHOSTUNREACH',
  'ENETUNREACH',
]

const isRefused = (err: unknown): boolean => err instanceof Error && 'code' in err && REFUSALS.includes(err.code)
