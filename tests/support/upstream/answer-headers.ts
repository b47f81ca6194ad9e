/** The headers that a 200 of the model route and the 101 of a socket have in common. */
import type { Account } from './accounts.ts'
import { catalogFor, getEtag } from './models.ts'
import { continueTurn, type Received } from './received.ts'
import { rateHeaders } from './usage.ts'
import type { World } from './world.ts'

export function answerHeaders(received: Received, account: Account, world: World): Record<string, string> {
  return {
    'x-models-etag': getEtag(catalogFor(account, getClientVersion(received))),
    'x-reasoning-included': 'true',
    'x-codex-turn-state': continueTurn(received, account, world.mint),
    ...rateHeaders(account, world.now()),
  }
}

/** The version in `codex_exec/0.169.0 (…)`, or in the `version` header of the built-in provider. */
function getClientVersion({ headers }: Received): string {
  return headers.version ?? /^[\w-]+\/(\d+\.\d+\.\d+)/.exec(headers['user-agent'] ?? '')?.[1] ?? '0.0.0'
}
