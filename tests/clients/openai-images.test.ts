/** The Images API of the official `openai` SDK through Sluice: generate, edit and stream. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import OpenAI, { BadRequestError, InternalServerError, NotFoundError, toFile } from 'openai'
import { IMAGE_USAGE, PIXEL } from '../support/upstream/relay-routes.ts'
import { startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World
let client: OpenAI

beforeAll(async () => {
  world = await startWorld({ accounts: [{}, { plan: 'free' }] })
  client = new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 })
})

afterAll(() => world[Symbol.asyncDispose]())

afterEach(() => {
  const seen = [...world.upstream.oddities]
  world.upstream.reset()
  expect(seen).toEqual([])
})

const png = () => toFile(Buffer.from(PIXEL, 'base64'), 'a.png', { type: 'image/png' })
const sent = () => world.upstream.requests.findLast(({ path }) => path.includes('/images/'))
const getFailure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error) => error,
  )

test('images.generate', async () => {
  const made = await client.images.generate({
    model: 'gpt-image-2',
    prompt: 'A square',
    size: '1024x1024',
    quality: 'low',
    user: 'u',
  })
  expect(made.data).toEqual([{ b64_json: PIXEL, revised_prompt: 'Revised: A square' }])
  expect(made.usage).toMatchObject(IMAGE_USAGE)
  expect(sent()?.body).toEqual({ model: 'gpt-image-2', prompt: 'A square', size: '1024x1024', quality: 'low' })
})

test('images.edit with several images and a mask', async () => {
  const made = await client.images.edit({
    model: 'gpt-image-1',
    prompt: 'Red',
    image: [await png(), await png()],
    mask: await png(),
    input_fidelity: 'high',
  })
  expect(made.data?.[0]?.b64_json).toBe(PIXEL)
  const image_url = `data:image/png;base64,${PIXEL}`
  expect(sent()?.body).toEqual({
    model: 'gpt-image-1',
    prompt: 'Red',
    input_fidelity: 'high',
    images: [{ image_url }, { image_url }],
    mask: { image_url },
  })
})

test('a single image, as the SDK sends it', async () => {
  await client.images.edit({ prompt: 'Red', image: await png() })
  expect(sent()?.body).toMatchObject({ model: 'gpt-image-2', images: [{}] })
})

test('streams of both', async () => {
  const types: string[] = []
  const generated = await client.images.generate({ prompt: 'A square', stream: true, partial_images: 2 })
  for await (const event of generated) types.push(event.type)
  const edited = await client.images.edit({ prompt: 'Red', image: await png(), stream: true, partial_images: 1 })
  for await (const event of edited) types.push(event.type)
  expect(types).toEqual([
    'image_generation.partial_image',
    'image_generation.partial_image',
    'image_generation.completed',
    'image_edit.partial_image',
    'image_edit.completed',
  ])
})

test('errors are those of the SDK', async () => {
  const wrong = await getFailure(client.images.generate({ prompt: 'A square', size: '512x512', model: 'gpt-image-1' }))
  expect(wrong).toBeInstanceOf(BadRequestError)
  expect(wrong).toMatchObject({ param: 'size', code: 'invalid_request_error' })
  expect(await getFailure(client.images.createVariation({ image: await png() }))).toBeInstanceOf(NotFoundError)
  world.upstream.accounts[0]?.next({ on: 'image', status: 404, body: { detail: 'Not Found' } })
  const none = await getFailure(client.images.generate({ prompt: 'A square' }))
  expect(none).toBeInstanceOf(InternalServerError)
  expect(none).toMatchObject({ status: 503, code: 'no_plan_support_for_model' })
})
