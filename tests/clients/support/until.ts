/** Waits for what another process does in its own time. */

const DEADLINE_MS = 10_000

/** Asks every few milliseconds until it holds. Throws after 10 s with `explain()` in the message. */
export async function until(holds: () => boolean | Promise<boolean>, explain: () => string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`It did not come true within 10 s: ${holds}\n${explain()}`)
    await Bun.sleep(5)
  }
}
