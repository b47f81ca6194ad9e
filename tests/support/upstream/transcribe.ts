/** Transcription as ChatGPT is assumed to offer it: a multipart form with only `file` and `prompt`. */
import { apiError, detail } from './refusal.ts'
import type { RelayCall, RelayRoute } from './relay-routes.ts'

/** The response lists the content of the form, so that tests can compare it. */
export function getTranscript(audio: string, prompt: string): string {
  return `You said ${audio}.${prompt === '' ? '' : ` (${prompt})`}`
}

async function transcribe({ received }: RelayCall): Promise<Response> {
  const { headers, bytes } = received
  const type = headers['content-type'] ?? ''
  if (!type.startsWith('multipart/form-data')) throw detail(415, 'Expected a form')
  const sent = new Response(new Uint8Array(bytes), { headers: { 'content-type': type } })
  const form = await sent.formData().catch(() => {
    throw detail(400, 'The form cannot be read')
  })
  const names = [...form.keys()]
  const unknown = names.find((name) => name !== 'file' && name !== 'prompt')
  if (unknown !== undefined) throw apiError(400, 'unknown_parameter', `Unknown parameter: ${unknown}`, unknown)
  if (new Set(names).size !== names.length) throw detail(400, 'A field came twice')
  const file = form.get('file')
  if (file === null || typeof file === 'string' || file.size === 0) throw apiError(400, 'missing', 'No file', 'file')
  return Response.json({ text: getTranscript(await file.text(), String(form.get('prompt') ?? '')) })
}

export const TRANSCRIBE: readonly RelayRoute[] = [
  { method: 'POST', path: 'transcribe', fault: 'transcribe', headers: 'smallest', answer: transcribe },
]
