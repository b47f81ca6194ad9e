/** Parts of the API pages: text with code, and lists of errors. */
import type { FC } from 'hono/jsx'
import type { Code } from '../../src/errors.ts'

export interface Refusal {
  status: number
  codes: readonly Code[]
}

/** Code is between backticks. */
export const Text: FC<{ text: string }> = ({ text }) => (
  <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>
)

export const Codes: FC<Refusal> = ({ status, codes }) => (
  <>
    <b>{status}</b>{' '}
    {codes.map((code) => (
      <>
        <code>{code}</code>{' '}
      </>
    ))}
  </>
)
