/** Whether the API reference has a response. */
import type { Operation } from '../../src/api-docs/operations.ts'

/** `code` is that of an error. */
export const documents = ({ words, refusals }: Operation, status: number, code: string | null): boolean => {
  if (status < 400) return status === (words.status ?? 200) || (words.leadsOn === true && status === 302)
  return refusals.all.some(
    (refusal) => refusal.status === status && (refusal.codes as readonly string[]).includes(code ?? ''),
  )
}
