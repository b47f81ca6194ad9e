/** The multipart form of a transcription: what a client may send, and what ChatGPT takes of it. */
import { AppError } from '../../errors.ts'
import { TRANSCRIPTION_NAMES } from '../../model/catalog/audio-models.ts'
import { invalid } from './invalid-request.ts'

/** OpenAI's own limit. */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024
const MAX_PROMPT_CHARS = 256 * 1024
export const MAX_AUDIO_FIELDS = 32

export interface Transcription {
  file: File
  prompt: string | null
  format: 'json' | 'text' | 'stream'
  /** Names of fields that are not sent. */
  dropped: string[]
}

const NATIVE_FIELDS: ReadonlySet<string> = new Set(['file', 'prompt'])
const PUBLIC_FIELDS: ReadonlySet<string> = new Set([...NATIVE_FIELDS, 'model', 'response_format', 'stream'])

/** Throws `invalid_request_error` and `payload_too_large` that name the field. */
export const toTranscription = (form: FormData, isNative: boolean): Transcription => {
  const known = isNative ? NATIVE_FIELDS : PUBLIC_FIELDS
  const names = [...form.keys()]
  const twice = names.find((name, index) => known.has(name) && names.indexOf(name) !== index)
  if (twice !== undefined) throw invalid(twice, `The request has '${twice}' twice. Send it once.`)
  if (!isNative) checkModel(textIn(form, 'model'))
  const prompt = textIn(form, 'prompt')
  if ((prompt?.length ?? 0) > MAX_PROMPT_CHARS)
    throw invalid('prompt', `'prompt' is longer than ${MAX_PROMPT_CHARS} characters.`)
  return {
    file: fileIn(form, isNative),
    prompt,
    format: isNative ? 'json' : getFormat(form),
    dropped: [...new Set(names.filter((name) => !known.has(name)))],
  }
}

const fileIn = (form: FormData, isNative: boolean): File => {
  const file = form.get('file')
  if (file === null) throw invalid('file', "The form has no 'file'.")
  if (typeof file === 'string') throw invalid('file', "'file' must be a file with a name.")
  if (file.size === 0) throw invalid('file', "'file' is empty.")
  if (file.size <= MAX_AUDIO_BYTES) return file
  throw new AppError('payload_too_large', {
    message: `'file' is larger than ${MAX_AUDIO_BYTES / 1024 / 1024} MiB.`,
    param: 'file',
    ...(isNative && { status: 400 }),
  })
}

const textIn = (form: FormData, name: string): string | null => {
  const value = form.get(name)
  if (value !== null && typeof value !== 'string') throw invalid(name, `'${name}' must not be a file.`)
  return value
}

const checkModel = (model: string | null): void => {
  if (!TRANSCRIPTION_NAMES.some((name) => name === model))
    throw invalid('model', `'model' must be one of ${TRANSCRIPTION_NAMES.join(', ')}.`)
}

const getFormat = (form: FormData): Transcription['format'] => {
  const format = textIn(form, 'response_format') ?? 'json'
  if (format !== 'json' && format !== 'text')
    throw invalid('response_format', "'response_format' must be json or text.")
  const stream = textIn(form, 'stream') ?? 'false'
  if (stream !== 'true' && stream !== 'false') throw invalid('stream', "'stream' must be true or false.")
  return stream === 'true' ? 'stream' : format
}
