/** Estimates the input tokens of a Messages request from its size. */
import type { JsonObject } from '../../lib/json.ts'

const BYTES_PER_TOKEN = 3.6
/** Tokens for an image or a document in base64. Assumed. */
const MEDIA = { bytesPerToken: 750, least: 85, most: 1600 }

export const estimateInputTokens = ({ system, messages, tools }: JsonObject): number =>
  Math.ceil(tokensOf(messages) + tokensOf(system) + jsonTokens(tools))

const jsonTokens = (value: unknown): number =>
  value == null ? 0 : Buffer.byteLength(JSON.stringify(value)) / BYTES_PER_TOKEN

const tokensOf = (value: unknown): number => {
  if (typeof value === 'string') return Buffer.byteLength(value) / BYTES_PER_TOKEN
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + tokensOf(one), 0)
  const { type, source, signature: _, cache_control: __, ...members } = value as JsonObject // as: an object that is no list
  const isMedia = type === 'image' || type === 'document'
  return Object.values(members).reduce<number>((sum, one) => sum + tokensOf(one), isMedia ? mediaTokens(source) : 0)
}

const mediaTokens = (source: unknown): number => {
  const { type, data } = (source ?? {}) as JsonObject // as: members are checked
  if (type === 'text') return tokensOf(data)
  const bytes = typeof data === 'string' ? data.length * 0.75 : 0
  return Math.min(MEDIA.most, Math.max(MEDIA.least, bytes / MEDIA.bytesPerToken))
}
