/** Keeps what this process knows of what commands and other processes do up to date. */
import { announce, announceAll } from '../../db/commit.ts'
import { watchDatabase } from '../../db/watch.ts'
import { getUsage } from '../model/accounts/accounts.ts'
import { limitsInUse } from '../model/keys/key-limits.ts'
import type { Bindings } from './bindings.ts'
import type { World } from './build-bindings.ts'

/** A request waits at most a second for the parts of key limits that other processes return. */
const ALONE_MS = 250
const SHARED_MS = 20
/** Other processes write their log ten times a second. */
const PAUSE_MS = 500

/** `changed` is called after every change. Returns the stop function. */
export const watchOtherProcesses = (
  { folder: { sqlite, db }, clock, log, sharing, others }: World,
  bindings: Bindings,
  changed: () => void,
): (() => void) => {
  /** A change without a topic is then the request log of another process. Otherwise it may be anything. */
  const hasPeers = () => sharing !== undefined || bindings.lifecycle.handedOver || (others?.hasEarlier() ?? false)
  let cancelRead: (() => void) | null = null
  const readSoon = () => {
    cancelRead ??= clock.after(PAUSE_MS, () => {
      cancelRead = null
      readServed(bindings)
    })
  }
  const stopWatching = watchDatabase({
    ...{ sqlite, db, clock },
    everyMs: sharing ? SHARED_MS : ALONE_MS,
    onMoved: (topics) => {
      if (hasPeers()) readSoon()
      if (topics.size > 0) announce(db, topics)
      else if (!hasPeers()) announceAll(db)
      changed()
    },
    onError: (err) => log.error('database changes could not be watched', { err }),
  })
  return () => {
    stopWatching()
    cancelRead?.()
  }
}

/** What other processes served: their rows of the log, the usage of accounts, and what is used of key limits. */
const readServed = ({ db, log, live, pool, keys, ledger }: Bindings): void => {
  live.ended(1)
  live.note('usage')
  try {
    pool.learnUsage(getUsage(db))
    ledger.flush() // the rows then count what ended here, too
    if (ledger.healthy) keys.refreshLimits(limitsInUse(db))
  } catch (err) {
    log.warn('what other processes served could not be read', { err })
  }
}
