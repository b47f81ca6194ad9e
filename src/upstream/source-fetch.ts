/** Calls to model sources: to allowed addresses only, checked again at each connection, without redirects. */
import { AppError } from '../errors.ts'
import { SealError } from '../lib/seal.ts'
import type { Source } from '../model/sources/sources.ts'
import type { GuardedFetch } from './guarded-fetch.ts'

interface SourceCall {
  /** Under the base URL: `/models`. */
  path: string
  /** Absent: GET. */
  body?: Exclude<BodyInit, ReadableStream>
  contentType?: string
  accept: string
  signal: AbortSignal
}

/** Private networks are allowed, because most sources are in one. */
const RULES = { allowsPrivate: true }

export class SourceFetch {
  readonly #guarded: GuardedFetch

  constructor(guarded: GuardedFetch) {
    this.#guarded = guarded
  }

  /** Why there can be no source at `baseUrl` (as `getBaseUrl` returns it); null: there can, as far as is known. */
  async getProblem(baseUrl: string): Promise<string | null> {
    return (await this.#guarded.resolve(new URL(baseUrl), RULES)).problem
  }

  /**
   * The answer of the source, whatever its status, with the headers Accept, Content-Type and Authorization of the source.
   * Its body may be compressed. Throws `model_source_unreachable`, `model_source_error` for a redirect,
   * `model_source_credentials_error` for a key that cannot be decrypted, and the reason of an aborted signal.
   */
  readonly fetch = async (source: Pick<Source, 'baseUrl' | 'key'>, call: SourceCall): Promise<Response> => {
    const url = source.baseUrl + call.path
    const { problem, addresses } = await this.#guarded.resolve(new URL(url), RULES)
    call.signal.throwIfAborted()
    if (problem !== null) throw new AppError('model_source_unreachable', { message: problem })
    const response = await this.#guarded
      .fetchAt(addresses, url, getInit(toKey(source), call))
      .catch((cause: unknown) => {
        if (call.signal.aborted) throw call.signal.reason
        const ofProxy = cause instanceof AppError ? { message: cause.message } : {}
        throw new AppError('model_source_unreachable', { ...ofProxy, cause })
      })
    if (response.status < 300 || response.status > 399 || response.status === 304) return response
    void response.body?.cancel().catch(() => {}) // an unread body keeps its connection
    throw new AppError('model_source_error', {
      message: 'The model source answered with a redirect, which is not followed. Use the address it redirects to.',
    })
  }
}

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
