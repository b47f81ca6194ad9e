/** Where a call to ChatGPT or OpenAI leaves: as the environment says, through proxies of a pool, or not at all. */
import { AppError } from '../../errors.ts'

/** Why an account has no route: as words of the API, the log and errors. */
export const EGRESS_REASONS = {
  default_pool_unconfigured: 'no default pool is set',
  pool_unavailable: 'its pool is turned off or missing',
  pool_has_no_active_endpoints: 'its pool has no active proxy',
  proxy_credentials_undecryptable: 'the stored proxy password cannot be read',
  endpoints_unreachable: 'no proxy of its pool connects',
} as const
export type EgressReason = keyof typeof EGRESS_REASONS

/** In words; reasons of other versions are shown as they are. */
export const egressText = (reason: string): string =>
  Object.hasOwn(EGRESS_REASONS, reason) ? EGRESS_REASONS[reason as EgressReason] : reason // as: checked by hasOwn

/** A proxy, with percent-encoded credentials in `url`. Never shown or logged. */
export interface ProxyEndpoint {
  id: string
  url: string
}

/** Tried in order until one connects. */
export interface ProxyRoute {
  kind: 'proxies'
  /** The same as long as the route leads through the same proxies. */
  key: string
  endpoints: () => readonly ProxyEndpoint[]
  /** What came of connecting through an endpoint; null: it connected. */
  note: (endpointId: string, failure: string | null) => void
}

export type Route =
  /** Directly, or through the proxy that the environment names. */
  { kind: 'environment' } | ProxyRoute | { kind: 'closed'; reason: EgressReason }

const ENVIRONMENT: Route = Object.freeze({ kind: 'environment' })

/** For an account without a pool while routing is off. */
export const AS_ENVIRONMENT = ENVIRONMENT

/** For calls that are made for no account: health checks, and nothing that carries a token. */
export const NOT_FOR_AN_ACCOUNT = ENVIRONMENT

/** The error of a call without a route. Names no proxy, because clients see it. */
export const noRoute = (reason: EgressReason, cause?: unknown): AppError =>
  new AppError('egress_unavailable', {
    message: `The account has no outbound proxy for this request: ${EGRESS_REASONS[reason]} (${reason}).`,
    details: { reason },
    cause,
  })

/** The reason in an error of `noRoute`, also as its cause; null: another error. */
export const getEgressReason = (err: unknown): EgressReason | null => {
  for (let each = err; each instanceof Error; each = each.cause)
    if (each instanceof AppError && each.code === 'egress_unavailable')
      return each.extra.details?.reason as EgressReason // as: `noRoute` sets it
  return null
}
