/** Checks what an OpenAI SDK asks of the Images API and writes it as the JSON of ChatGPT's image routes. */
import { z } from 'zod'
import type { JsonObject } from '../../lib/json.ts'
import { DEFAULT_IMAGE_MODEL, IMAGE_MODELS, type ImageModel } from '../../model/catalog/image-models.ts'
import { invalid, parseAt } from './invalid-request.ts'

export type ImageAction = 'generations' | 'edits'

const MAX_IMAGES = 16
/** All images of an edit and its mask together, before they are encoded. */
const MAX_IMAGE_BYTES = 64 * 1024 * 1024

const FIELDS = {
  model: z.enum(IMAGE_MODELS, `must be one of ${IMAGE_MODELS.join(', ')}`).default(DEFAULT_IMAGE_MODEL),
  prompt: z.string('must be a string').refine((text) => text.trim() !== '', 'must not be empty'),
  n: z.literal(1, 'must be 1').optional(),
  size: z.string('must be a string').optional(),
  quality: z.enum(['low', 'medium', 'high', 'auto'], 'must be low, medium, high or auto').optional(),
  background: z.enum(['transparent', 'opaque', 'auto'], 'must be transparent, opaque or auto').optional(),
  output_format: z.enum(['png', 'jpeg', 'webp'], 'must be png, jpeg or webp').optional(),
  output_compression: z.int('must be 0 to 100').min(0, 'must be 0 to 100').max(100, 'must be 0 to 100').optional(),
  moderation: z.enum(['auto', 'low'], 'must be auto or low').optional(),
  partial_images: z.int('must be 0 to 3').min(0, 'must be 0 to 3').max(3, 'must be 0 to 3').optional(),
  stream: z.boolean('must be true or false').optional(),
  input_fidelity: z.enum(['low', 'high'], 'must be low or high').optional(),
}

const DATA_URL = /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$/
const Picture = z.object({
  image_url: z.string('must be a data URL').regex(DATA_URL, 'must be a base64 data URL of a PNG, JPEG or WebP image'),
})
const Edit = z.object({
  ...FIELDS,
  images: z
    .array(Picture, 'must be a list of images')
    .min(1, 'needs an image')
    .max(MAX_IMAGES, `has more than ${MAX_IMAGES} images`),
  mask: Picture.optional(),
})
const Generation = z.object(FIELDS)

interface ImageRequest {
  /** As it is sent. */
  body: JsonObject & { model: ImageModel; stream?: boolean | undefined }
  /** Names of members that were left out. */
  dropped: string[]
}

/** Throws `invalid_request_error` that names the field. Members that the image routes do not know are dropped. */
export const toImageRequest = (action: ImageAction, json: JsonObject): ImageRequest => {
  const { response_format: format, ...members } = withoutNulls(json)
  if (format !== undefined && format !== 'b64_json')
    throw invalid('response_format', "Images are returned as base64 only; 'response_format' must be 'b64_json'.")
  const schema = action === 'edits' ? Edit : Generation
  const body = parseAt<typeof Edit | typeof Generation>(schema, members)
  checkModel(action, body)
  if ('images' in body) checkWeight(body.images, body.mask)
  const dropped = Object.keys(json).filter((name) => !Object.hasOwn(schema.shape, name) && json[name] !== null)
  return { body, dropped }
}

/** SDKs send null for members that are not set. */
const withoutNulls = (json: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(json).filter(([, value]) => value !== null))

const checkModel = (
  action: ImageAction,
  { model, size, background, input_fidelity }: z.output<typeof Generation>,
): void => {
  if (size !== undefined && size !== 'auto' && !isSize(size, model))
    throw invalid('size', `Invalid value for 'size': ${SIZE_RULES[model === 'gpt-image-2' ? 'free' : 'fixed']}.`)
  if (background === 'transparent' && model === 'gpt-image-2')
    throw invalid('background', "Invalid value for 'background': gpt-image-2 has no transparent background.")
  if (input_fidelity === undefined) return
  if (action !== 'edits' || !TAKES_FIDELITY.has(model))
    throw invalid('input_fidelity', "'input_fidelity' works only for edits with gpt-image-1 or gpt-image-1.5.")
}

const TAKES_FIDELITY: ReadonlySet<ImageModel> = new Set(['gpt-image-1', 'gpt-image-1.5'])
const FIXED_SIZES: ReadonlySet<string> = new Set(['1024x1024', '1536x1024', '1024x1536'])
const SIZE_RULES = {
  fixed: 'must be auto, 1024x1024, 1536x1024 or 1024x1536',
  free: 'must be auto or WIDTHxHEIGHT in multiples of 16, up to 3840 an edge, at most 3:1, with 655360 to 8294400 pixels',
}

const isSize = (size: string, model: ImageModel): boolean => {
  if (model !== 'gpt-image-2') return FIXED_SIZES.has(size)
  const [, width, height] = (/^([1-9]\d{0,3})x([1-9]\d{0,3})$/.exec(size) ?? []).map(Number)
  if (width === undefined || height === undefined) return false
  const [short, long] = width < height ? [width, height] : [height, width]
  const pixels = width * height
  const isInBounds = long <= 3840 && long <= 3 * short && pixels >= 655_360 && pixels <= 8_294_400
  return isInBounds && width % 16 === 0 && height % 16 === 0
}

const checkWeight = (images: z.output<typeof Picture>[], mask: z.output<typeof Picture> | undefined): void => {
  const bytes = [...images, ...(mask ? [mask] : [])].reduce(
    (sum, { image_url: url }) => sum + Math.floor(((url.length - url.indexOf(',') - 1) * 3) / 4),
    0,
  )
  if (bytes > MAX_IMAGE_BYTES) throw invalid('image', 'The images and the mask together are larger than 64 MiB.')
}

/** Fields of a form that are no text in JSON. */
const NUMBERS = ['n', 'output_compression', 'partial_images']

/** Turns a multipart edit into the equivalent JSON. Throws `invalid_request_error` that names the field. */
export const imageFormToJson = async (form: FormData): Promise<JsonObject> => {
  const fields = new Map<string, unknown>() // no object: clients choose the names
  const images: JsonObject[] = []
  for (const [name, value] of form) {
    const isFile = typeof value !== 'string'
    if (name === 'image' || name === 'image[]') {
      if (images.length === MAX_IMAGES) throw invalid('image', `'image' has more than ${MAX_IMAGES} images.`)
      images.push(await toPicture('image', value))
    } else if (name === 'mask') {
      if (fields.has('mask')) throw invalid('mask', "There can be only one 'mask'.")
      fields.set('mask', await toPicture('mask', value))
    } else if (isFile) throw invalid(name, `'${name}' must not be a file.`)
    else if (fields.has(name)) throw invalid(name, `The request has '${name}' twice. Send it once.`)
    else fields.set(name, toValue(name, value))
  }
  if (images.length === 0) throw invalid('image', "'image' needs at least one file.")
  return { ...Object.fromEntries(fields), images }
}

const toValue = (name: string, text: string): unknown => {
  if (name === 'stream') return text === 'true' ? true : text === 'false' ? false : text
  return NUMBERS.includes(name) && /^\d+$/.test(text) ? Number(text) : text
}

const toPicture = async (name: string, value: FormDataEntryValue): Promise<JsonObject> => {
  if (typeof value === 'string') throw invalid(name, `'${name}' must be a file.`)
  const bytes = Buffer.from(await value.arrayBuffer())
  const type = typeOf(bytes)
  if (type === null) throw invalid(name, `'${name}' must be a PNG, JPEG or WebP image.`)
  return { image_url: `data:image/${type};base64,${bytes.toString('base64')}` }
}

/** By its first bytes: what clients say of a file's type is often missing. */
const typeOf = (bytes: Buffer): string | null => {
  if (bytes.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n') return 'png'
  if (bytes.subarray(0, 3).toString('latin1') === '\xff\xd8\xff') return 'jpeg'
  const isWebp = bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP'
  return isWebp ? 'webp' : null
}
