/** Which accounts may serve a key. */

/** Null: every account. */
export type KeyScope = { readonly accountIds: ReadonlySet<string>; readonly tags: ReadonlySet<string> } | null

interface Scoped {
  readonly id: string
  readonly tags: readonly string[]
}

/** By its ID, or by any of its tags. */
export const isInScope = (scope: KeyScope, { id, tags }: Scoped): boolean =>
  scope === null || scope.accountIds.has(id) || tags.some((tag) => scope.tags.has(tag))

/** Null for a key without either list. */
export const keyScope = (accountIds: readonly string[] | null, tags: readonly string[] | null): KeyScope =>
  accountIds === null && tags === null ? null : { accountIds: new Set(accountIds), tags: new Set(tags) }
