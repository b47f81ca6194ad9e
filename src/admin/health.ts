/** `/health*`: probes for containers, load balancers and curl. */
import { engineOf } from '../../db/commit.ts'
import { open } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'

const PROBE = 'health probe'

/** The process answers. */
export const live = createHandlers(open(PROBE), (c) => c.json({ status: 'ok' }))

/**
 * Ready for new requests: not while shutting down or while the request log cannot be written. Ready even without
 * accounts. Nodes stay ready without PostgreSQL as long as memory has room for the log: otherwise all of them would be
 * taken out of service together.
 */
export const ready = createHandlers(open(PROBE), (c) => {
  const checks = {
    draining: c.env.lifecycle.draining || c.env.lifecycle.leaving ? 'yes' : 'no',
    ledger: c.env.ledger.healthy ? 'ok' : 'failing',
  }
  const mayWait = () => engineOf(c.env.db) === 'postgres' && c.env.ledger.hasRoom
  const isReady = checks.draining === 'no' && (checks.ledger === 'ok' || mayWait())
  return c.json({ status: isReady ? 'ok' : 'unavailable', checks }, isReady ? 200 : 503)
})

/** The server listens only after everything is loaded, so any answer means started. */
export const startup = createHandlers(open(PROBE), (c) => c.json({ status: 'ok' }))
