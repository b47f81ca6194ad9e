/** Finds accounts with the same user and workspace (a seat) among many. */
import { isSameSeat } from '../accounts/account-intake.ts'
import type { AccountIdentity } from '../accounts/auth-json.ts'

interface Entry<T> {
  identity: AccountIdentity
  value: T
}

export class Seats<T> {
  readonly #byUser = new Map<string, Entry<T>[]>()
  readonly #byEmail = new Map<string, Entry<T>[]>()

  add(identity: AccountIdentity, value: T): void {
    const entry = { identity, value }
    if (identity.chatgptUserId !== null) this.#byUser.getOrInsertComputed(identity.chatgptUserId, () => []).push(entry)
    this.#byEmail.getOrInsertComputed(identity.email.toLowerCase(), () => []).push(entry)
  }

  /**
   * Returns what was added for the same seat. An incomplete identity matches only if exactly one seat fits, because a
   * user can be in several workspaces.
   */
  find(identity: AccountIdentity): T | undefined {
    const ofUser = identity.chatgptUserId === null ? [] : (this.#byUser.get(identity.chatgptUserId) ?? [])
    const ofEmail = this.#byEmail.get(identity.email.toLowerCase()) ?? []
    const same = [...new Set([...ofUser, ...ofEmail])].filter((entry) => isSameSeat(entry.identity, identity))
    const exact = same.find((entry) => entry.identity.chatgptAccountId === identity.chatgptAccountId)
    const values = new Set(same.map(({ value }) => value))
    return exact ? exact.value : values.size === 1 ? same[0]?.value : undefined
  }
}
