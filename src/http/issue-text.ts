/** What is wrong with a value, in words for people, where zod's own are for programmers. */
import type { z } from 'zod'

export const issueText = (issue: z.core.$ZodIssue): string => {
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid option')) return choiceText(issue.values)
  if (issue.code === 'invalid_format') return FORMATS[issue.message] ?? issue.message
  return issue.message
}

const FORMATS: Readonly<Record<string, string>> = {
  'Invalid ISO datetime': 'enter a date and time like 2026-01-31T18:30:00Z',
  'Invalid ISO date': 'enter a date like 2026-01-31',
}

const choiceText = (values: readonly unknown[]): string => {
  const names = values.map(String)
  return names.length < 2
    ? `only ${names.join()} is possible`
    : `choose ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}
