/** Schemas as documentation: types, bounds, nested fields, and examples that can be pasted. */
import { expect, test } from 'bun:test'
import { z } from 'zod'
import { getCurl, getExample } from '../../src/api-docs/examples.ts'
import { getFields } from '../../src/api-docs/fields.ts'
import { getJsonSchema } from '../../src/api-docs/json-schema.ts'
import type { Operation } from '../../src/api-docs/operations.ts'

const getTypes = (shape: z.ZodRawShape) =>
  Object.fromEntries(getFields(getJsonSchema(z.object(shape))).map(({ name, type }) => [name, type]))

test('types state their bounds, choices and null, and nothing only a validator needs', () => {
  expect(
    getTypes({
      text: z.string(),
      bounded: z.string().min(8).max(100),
      count: z.int().min(1),
      share: z.number().positive().max(16),
      maybe: z.string().max(5).nullish(),
      choice: z.enum(['a', 'b']).nullable(),
      cleaned: z
        .string()
        .toLowerCase()
        .pipe(z.enum(['a', 'b'])),
      list: z.array(z.string().max(5)).nullish(),
      yes: z.literal('yes'),
      when: z.iso.datetime({ offset: true }),
    }),
  ).toEqual({
    text: 'string',
    bounded: 'string 8…100',
    count: 'integer ≥ 1',
    share: 'number > 0…16',
    maybe: 'string ≤ 5 | null',
    choice: '"a" | "b" | null',
    cleaned: '"a" | "b"',
    list: '(string ≤ 5)[] | null',
    yes: '"yes"',
    when: 'string (date-time)',
  })
})

test('fields of objects and of lists of objects are listed below them', () => {
  const shape = { one: z.strictObject({ a: z.int() }), many: z.array(z.object({ b: z.string().optional() })) }
  expect(getFields(getJsonSchema(z.object(shape))).map(({ name, isRequired }) => [name, isRequired])).toEqual([
    ['one', true],
    ['one.a', true],
    ['many', true],
    ['many[].b', false],
  ])
})

test('a field with a transform that accepts its absence is not required', () => {
  const filled = z.preprocess((value) => value ?? [], z.array(z.string()))
  expect(getJsonSchema(z.object({ filled, plain: z.string() })).required).toEqual(['plain'])
})

test('description and default are included', () => {
  const shape = { limit: z.coerce.number().int().default(50).describe('Rows.') }
  expect(getFields(getJsonSchema(z.object(shape)))[0]).toMatchObject({
    meaning: 'Rows.',
    preset: '50',
    isRequired: false,
  })
})

const operation = (over: object): Operation =>
  ({
    method: 'POST',
    path: '/api/things/{thingId}',
    access: { access: 'signed-in' },
    words: { does: '' },
    body: null,
    ...over,
  }) as Operation // as: an example needs no more of it

test('the smallest body has only the required fields', () => {
  const schema = z.strictObject({
    name: z.string().min(3),
    kind: z.enum(['x', 'y']),
    size: z.int().min(2),
    tags: z.array(z.string()).min(1),
    isOn: z.boolean(),
    note: z.string().optional(),
  })
  const body = { schema, json: getJsonSchema(schema) }
  const example = getExample(operation({ body }))
  expect(example).toEqual({ name: 'xxx', kind: 'x', size: 2, tags: ['x'], isOn: true })
  expect(schema.safeParse(example).success).toBe(true)
})

test.each([
  ['a change without a body', {}, 'curl -X POST -b cookies.txt http://x/api/things/THING_ID'],
  ['a read', { method: 'GET', access: { access: 'open' } }, 'curl http://x/api/things/THING_ID'],
  [
    'a body with a quote in it',
    { words: { does: '', example: { name: "O'Hara" } } },
    `curl \\\n  -b cookies.txt \\\n  -H 'content-type: application/json' \\\n  -d '{"name":"O'\\''Hara"}' \\\n  http://x/api/things/THING_ID`,
  ],
  [
    'a model route',
    { method: 'GET', path: '/v1/x', access: { access: 'client-key' } },
    'curl -H "Authorization: Bearer $OPENAI_API_KEY" http://x/v1/x',
  ],
  ['a page', { isPage: true }, null],
  ['a socket', { words: { does: '', status: 101 } }, null],
])('the command for %s', (_, over, command) => {
  expect(getCurl(operation(over), 'http://x')).toBe(command)
})

test('a shell parses the command as intended', async () => {
  const curl = getCurl(operation({ words: { does: '', example: { name: "O'Hara $HOME" } } }), 'http://x') ?? ''
  const shell = Bun.spawn(['sh', '-c', `curl() { printf '%s\\n' "$@"; }\n${curl}`], { stdout: 'pipe' })
  const said = await new Response(shell.stdout).text()
  expect(said.split('\n')).toContain(`{"name":"O'Hara $HOME"}`)
})
