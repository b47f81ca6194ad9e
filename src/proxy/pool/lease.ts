/** The slot of an account that a turn holds while it runs there. */
import type { Considered, Selection } from '../../model/log/skip-reasons.ts'
import type { LiveAccount } from './live-account.ts'

export type Granted = Pick<Extract<Selection, { kind: 'chosen' }>, 'considered' | 'moveAvoidable'>

interface Slots {
  give(account: LiveAccount): void
}

export class Lease {
  readonly account: LiveAccount
  readonly considered: readonly Considered[]
  /** The previous account could have served the request, and the move costs more than staying. */
  readonly moveAvoidable: boolean
  #pool: Slots | null

  constructor(account: LiveAccount, { considered, moveAvoidable }: Granted, pool: Slots) {
    this.account = account
    this.considered = considered
    this.moveAvoidable = moveAvoidable
    this.#pool = pool
  }

  /** Releases the slot; repeated calls do nothing. */
  release(): void {
    this.#pool?.give(this.account)
    this.#pool = null
  }
}
