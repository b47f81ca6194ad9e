/** Which transport a turn uses upstream: the setting, or under `auto` what fits client and model (spec §1.10). */
import { getObjects, isObject } from '../../lib/json.ts'
import type { Transport, Turn } from '../turn/turn.ts'

/**
 * The upstream accepts frames up to 16 MiB (assumed). Frames are measured before sending; the body is a little smaller.
 */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024
const MAX_AUTO_FRAME_BYTES = 14 * 1024 * 1024

interface Circumstances {
  bytes: number
  /** Sockets failed recently or in this turn (`socket-trouble.ts`). */
  isOnHttp: boolean
  modelPrefersSockets: boolean
}

export const transportFor = (turn: Turn, { bytes, isOnHttp, modelPrefersSockets }: Circumstances): Transport => {
  const setting = getRequiredTransport(turn) ?? turn.settings.upstreamStreamTransport
  const canUseSocket = turn.accept === 'text/event-stream' && bytes <= MAX_FRAME_BYTES && !isOnHttp
  if (setting === 'http' || !canUseSocket) return 'http'
  // A socket client continues responses that only its upstream socket knows, so it stays on one where possible.
  if (setting === 'websocket' || turn.transport === 'websocket') return 'websocket'
  if (bytes > MAX_AUTO_FRAME_BYTES || hasImages(turn)) return 'http'
  return modelPrefersSockets || isNative(turn.headers) ? 'websocket' : 'http'
}

/** A key may override the setting for HTTP clients; a socket client would lose the response it continues. */
const getRequiredTransport = ({ client, transport }: Turn): Transport | null => {
  const wish = transport === 'http' ? client.key?.transport : null
  if (wish === 'always_http') return 'http'
  return wish === 'always_websocket' ? 'websocket' : null
}

const NATIVE_ORIGINATORS: ReadonlySet<string> = new Set([
  'Codex Desktop',
  'codex_atlas',
  'codex_chatgpt_desktop',
  'codex_cli_rs',
  'codex_exec',
  'codex_sdk_ts',
  'codex_vscode',
])
const NATIVE_HEADERS = ['x-codex-turn-state', 'x-codex-turn-metadata', 'x-codex-beta-features'] as const

/** Whether the headers are those of the Codex CLI or its IDE extension. */
const isNative = (headers: Turn['headers']): boolean =>
  NATIVE_ORIGINATORS.has(headers.originator ?? '') || NATIVE_HEADERS.some((name) => headers[name] !== undefined)

/** Input images are megabytes large, and so are generated ones. */
const hasImages = ({ body }: Turn): boolean => {
  if (!body) return false
  const { tools, input } = body.json
  return (
    getObjects(tools).some(({ type }) => type === 'image_generation') ||
    getObjects(input).some(({ content, output }) => isImageList(content) || isImageList(output))
  )
}

const isImageList = (parts: unknown): boolean =>
  Array.isArray(parts) && parts.some((part) => isObject(part) && part.type === 'input_image')
