/**
 * Requests to servers that users configure: only to allowed addresses, checked again at each connection, without
 * redirects.
 */
import { lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { NOT_FOR_AN_ACCOUNT } from '../model/egress/route.ts'
import type { Dial } from './dial.ts'
import { getForms, isPrivateAddress, problemOfAddress, problemOfName } from './source-address.ts'

/** Looks up all addresses of a host name. Rejects if it has none. */
export type Lookup = (hostname: string) => Promise<readonly string[]>

export interface GuardedFetchDeps {
  dial: Pick<Dial, 'fetchAt' | 'isProxied'>
  lookup: Lookup
  /** The addresses where this server listens. Requests to them would loop. */
  own: () => { port: number; publicUrl: string | undefined }
}

interface Rules {
  allowsPrivate: boolean
}

interface Resolved {
  /** Why the server is not allowed, or null if it is. */
  problem: string | null
  /** The resolved addresses. Empty if the name could not be resolved. */
  addresses: readonly string[]
}

export class GuardedFetch {
  readonly #deps: GuardedFetchDeps

  constructor(deps: GuardedFetchDeps) {
    this.#deps = deps
  }

  /** Rejects a host if any of its addresses is not allowed, because the next connection could use that address. */
  async resolve(url: URL, rules: Rules): Promise<Resolved> {
    const found = await this.resolveDirectly(url, rules)
    const hostname = url.hostname.replace(/^\[|\]$/g, '')
    // A proxy resolves names itself, including names that cannot be resolved here.
    const isProxied = found.problem === null && this.#deps.dial.isProxied(url.href, NOT_FOR_AN_ACCOUNT)
    return isProxied ? { ...found, addresses: [hostname] } : found
  }

  /** The same check for connections without a proxy. */
  async resolveDirectly(url: URL, { allowsPrivate }: Rules): Promise<Resolved> {
    const hostname = url.hostname.replace(/^\[|\]$/g, '')
    const problem = problemOfName(hostname) ?? this.#problemOfOrigin(url)
    if (problem !== null) return { problem, addresses: [] }
    const addresses = isIP(hostname) ? [hostname] : await this.#deps.lookup(hostname).catch(() => [])
    const problems = addresses.map((address) => {
      const isRefused = !allowsPrivate && isPrivateAddress(address)
      return problemOfAddress(address) ?? (isRefused ? PRIVATE_PROBLEM : this.#problemOfOwn(address, url))
    })
    return { problem: problems.find((text) => text !== null) ?? null, addresses }
  }

  /**
   * Returns the response with any status. Redirects are not followed. After a refused connection, tries the next
   * address, because `localhost` can have two. Rejects with the error of the connection, or the reason of an aborted
   * signal.
   */
  async fetchAt(addresses: readonly string[], url: string, init: RequestInit): Promise<Response> {
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
    throw cause
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

const OWN_PROBLEM = 'This is the address of Sluice itself, which it cannot call.'
const PRIVATE_PROBLEM = 'This address is in a private network, which is not allowed here.'

/** Whether the URL is this server, with `http:` or `https:`, and with or without a dot at the end of the name. */
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
