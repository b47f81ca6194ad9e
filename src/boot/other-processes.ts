/** Keeps what this process knows of what commands and other processes do up to date. */
import { announce, announceAll, type Topic } from '../../db/commit.ts'
import { watchDatabase } from '../../db/watch.ts'
import type { Clock } from '../lib/clock.ts'
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
export const watchOtherProcesses = async (
  { folder: { db }, clock, log, sharing, others, nodes }: World,
  bindings: Bindings,
  changed: () => Promise<unknown>,
): Promise<() => Promise<void>> => {
  /** A change without a topic is then the request log of another process. Otherwise it may be anything. */
  const hasPeers = () => sharing !== undefined || bindings.lifecycle.handedOver || (others?.hasEarlier() ?? false)
  let cancelRead: (() => void) | null = null
  let isStopped = false
  const readSoon = () => {
    if (isStopped) return
    cancelRead ??= clock.after(PAUSE_MS, async () => {
      cancelRead = null
      await readServed(bindings)
    })
  }
  const onMoved = async (topics: ReadonlySet<Topic>) => {
    if (hasPeers()) readSoon()
    if (topics.size > 0) await announce(db, topics)
    else if (!hasPeers()) await announceAll(db)
    await changed()
  }
  const onError = (err: unknown) => log.error('could not apply changes of other processes', { err })
  const stopWatching = nodes
    ? await nodes.watch(oneByOne({ clock, onMoved, onError }))
    : await watchDatabase({ db, clock, everyMs: sharing ? SHARED_MS : ALONE_MS, onMoved, onError })
  return async () => {
    isStopped = true
    cancelRead?.()
    await stopWatching()
  }
}

interface Following {
  clock: Clock
  onMoved: (topics: ReadonlySet<Topic>) => Promise<unknown>
  onError: (err: unknown) => void
}

const RETRY_MS = 1000

/** Merges notifications that arrive while an earlier one is handled. If handling fails, it is repeated. */
const oneByOne = ({ clock, onMoved, onError }: Following): ((topics: ReadonlySet<Topic>) => void) => {
  let waiting: Set<Topic> | null = null
  let isRunning = false
  const run = async () => {
    isRunning = true
    for (let topics = waiting; topics; topics = waiting) {
      waiting = null
      try {
        await onMoved(topics)
      } catch (err) {
        onError(err)
        waiting = topics.union(waiting ?? new Set())
        await clock.sleep(RETRY_MS)
      }
    }
    isRunning = false
  }
  return (topics) => {
    waiting = topics.union(waiting ?? new Set<Topic>())
    if (!isRunning) void run()
  }
}

/** What other processes served: their rows of the log, the usage of accounts, and what is used of key limits. */
const readServed = async ({ db, log, live, pool, keys, ledger }: Bindings): Promise<void> => {
  live.ended(1)
  live.note('usage')
  try {
    pool.learnUsage(await getUsage(db))
    await ledger.readWritten(() => keys.preparedRefresh(() => limitsInUse(db))) // the rows then include the requests that ended here
  } catch (err) {
    log.warn('what other processes served could not be read', { err })
  }
}
