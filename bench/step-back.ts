/** Lets browsers run only where nobody else wants a core, as if they were on machines of their own. Linux. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

const LOWEST = 19

/** Every process whose name begins so. Those of another user stay as they are. */
export function stepBack(name: string): void {
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!pid) continue
    try {
      if (!readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith(name)) continue
      setPriority(pid, LOWEST)
      writeFileSync(`/proc/${pid}/autogroup`, `${LOWEST}`) // what counts between sessions, where the kernel groups by them
    } catch {
      // it has ended, it is not ours, or the kernel does not group
    }
  }
}
