/** The name and URL of this Sluice installation in messages. */
import { hostname } from 'node:os'
import type { Install } from './messages.ts'

export const getInstall = ({ PUBLIC_URL }: { PUBLIC_URL?: string | undefined }): Install => {
  const url = PUBLIC_URL === undefined ? null : new URL(PUBLIC_URL)
  return { name: url?.host ?? hostname(), url: url?.origin ?? null }
}
