/** The only poller of the tests: waits for something in another process or behind a socket. */

/** Never reached when all is well, so it is sized for a machine that does much else. */
export const PATIENCE_MS = 60_000
const LONGEST_PAUSE_MS = 20

/** Returns once it holds; throws after a minute with the condition and what `explain` adds. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  explain: string | (() => string) = '',
): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  for (let pauseMs = 1; !(await holds()); pauseMs = Math.min(pauseMs + 1, LONGEST_PAUSE_MS)) {
    if (performance.now() > deadline) {
      const more = typeof explain === 'string' ? explain : explain()
      throw new Error(`It did not come true within ${PATIENCE_MS / 1000} s: ${holds}\n${more}`)
    }
    await Bun.sleep(pauseMs)
  }
}

/**
 * Returns once a number stays the same: nothing moves any more. It counts turns of the event loop, not time, so both
 * ends of the connection have to be in this process.
 */
export async function untilUnchanged(read: () => number): Promise<void> {
  for (let last = Number.NaN, same = 0; same < 20; ) {
    const now = read()
    same = now === last ? same + 1 : 0
    last = now
    await Bun.sleep(1)
  }
}
