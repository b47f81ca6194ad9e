/** `/health*`: what a container, a load balancer and a person with curl ask. */
import { open } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'

const PROBE = 'health probe'

/** The process answers. */
export const live = createHandlers(open(PROBE), (c) => c.json({ status: 'ok' }))

/** New work should come here: not while shutting down, nor while the request log cannot be written. No accounts is ready. */
export const ready = createHandlers(open(PROBE), (c) => {
  const checks = {
    draining: c.env.lifecycle.draining ? 'yes' : 'no',
    ledger: c.env.ledger.healthy ? 'ok' : 'failing',
  }
  const isReady = checks.draining === 'no' && checks.ledger === 'ok'
  return c.json({ status: isReady ? 'ok' : 'unavailable', checks }, isReady ? 200 : 503)
})

/** The server listens only once everything is loaded, so an answer is the proof. */
export const startup = createHandlers(open(PROBE), (c) => c.json({ status: 'ok' }))
