/** Reads the multipart forms that OpenAI SDKs and the native client send with files. */
import { AppError } from '../../errors.ts'
import { invalid } from './invalid-request.ts'

interface FormRules {
  /** The field that an unreadable form is blamed on. */
  param: string
  maxFields: number
}

/** Throws `invalid_request_error` about `param`. The runtime's parser rejects a form without its last boundary. */
export const readForm = async (
  bytes: Uint8Array<ArrayBuffer>,
  contentType: string,
  { param, maxFields }: FormRules,
): Promise<FormData> => {
  if (!/^multipart\/form-data\s*;/i.test(contentType))
    throw invalid(param, 'The request body must be multipart/form-data with a file.')
  const [named, ...others] = contentType.matchAll(BOUNDARY)
  const boundary = named?.[1] ?? named?.[2] ?? ''
  if (boundary === '' || others.length > 0)
    throw invalid(param, 'The Content-Type of a multipart form must name exactly one boundary.')
  if (fieldsIn(bytes, boundary, maxFields) > maxFields)
    throw invalid(param, `The form has more than ${maxFields} fields.`)
  try {
    return await new Response(bytes, { headers: { 'content-type': contentType } }).formData()
  } catch (cause) {
    const message = 'The multipart form cannot be read. It may have been cut off.'
    throw new AppError('invalid_request_error', { param, message, cause })
  }
}

const BOUNDARY = /boundary=(?:"([^"]*)"|([^\s;"]+))/gi

/**
 * Counted before parsing: two million fields fit in a body, and the parser would block every stream for two seconds
 * (Bun 1.4.5). Stops counting above `most`.
 */
const fieldsIn = (bytes: Uint8Array<ArrayBuffer>, boundary: string, most: number): number => {
  const delimiter = Buffer.from(`--${boundary}`)
  const searched = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  let count = -1 // the last delimiter ends the form
  for (let at = searched.indexOf(delimiter); at !== -1 && count <= most; count++)
    at = searched.indexOf(delimiter, at + delimiter.length)
  return count
}
