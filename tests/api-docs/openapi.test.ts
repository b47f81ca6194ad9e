/** The OpenAPI document is complete and valid, and its bodies are accepted by the routes. */
import { describe, expect, test } from 'bun:test'
import { homedir } from 'node:os'
import { Validator } from '@seriousme/openapi-schema-validator'
import { z } from 'zod'
import { getExample } from '../../src/api-docs/examples.ts'
import { openApi } from '../../src/api-docs/openapi.ts'
import { getOperations, NO_WORDS, type Operation } from '../../src/api-docs/operations.ts'
import { PATH_PARAMETERS, WORDS } from '../../src/api-docs/words/words.ts'
import type { RouteRow } from '../../src/http/route-table.ts'
import { everyRoute } from '../../src/routes/every-route.ts'

const rows = everyRoute
const operations = getOperations(rows)
const document = openApi(operations)
const getName = ({ method, path }: Pick<RouteRow, 'method' | 'path'>) => `${method} ${path}`
const withBody = operations.filter((one): one is Operation & { body: object } => one.body !== null)

interface Documented {
  operationId: string
  security: Record<string, string[]>[]
  responses: Record<string, { 'x-codes'?: string[] }>
  requestBody?: { required?: boolean; content: Record<string, { schema: { $ref?: string } }> }
  parameters?: { name: string; in: string; required?: boolean }[]
  'x-sluice': Record<string, unknown>
}
const paths = document.paths as Record<string, Record<string, Documented>> // as: it consists of objects without types
const documented = (name: string): Documented => {
  const [method = '', path = ''] = name.split(' ')
  return paths[path]![method.toLowerCase()]! // a test without one fails here
}

describe('complete', () => {
  test('every row of the route table is in it, and nothing else', () => {
    const listed = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(listed.toSorted()).toEqual(rows.map((row) => getName({ ...row, path: templated(row.path) })).toSorted())
  })

  test('every implemented route has a description, and every description has a route', () => {
    const silent = operations.filter(({ words }) => words === NO_WORDS)
    expect(silent.map(({ method, route }) => `${method} ${route}`)).toEqual([])
    const names = rows.map(getName)
    expect(Object.keys(WORDS).filter((name) => !names.includes(name))).toEqual([])
    const beginnings = rows.flatMap(({ path }) => getPrefixes(path))
    expect(Object.keys(PATH_PARAMETERS).filter((path) => !beginnings.includes(path))).toEqual([])
  })

  test('every parameter and every input field has a description', () => {
    const silent = operations
      .filter(({ isPage }) => !isPage)
      .flatMap(({ method, route, parameters, body }) => [
        ...parameters.filter(({ schema }) => !schema.description).map(({ name }) => `${method} ${route} ${name}`),
        ...Object.entries(body?.json.properties ?? {})
          .filter(([, schema]) => !schema.description)
          .map(([name]) => `${method} ${route} ${name}`),
      ])
    expect(silent).toEqual([])
  })

  test('of routes with the same handler only one is described', () => {
    const twice = operations.filter(({ aliasOf, method, route }) => aliasOf !== null && WORDS[`${method} ${route}`])
    expect(twice.map(({ method, route }) => `${method} ${route}`)).toEqual([])
  })
})

describe('valid', () => {
  test('it is valid OpenAPI 3.1 according to the official schema', async () => {
    const validator = new Validator()
    const result = await validator.validate(JSON.parse(JSON.stringify(document)))
    expect(result).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
  })

  test('ids are unique, and every reference resolves', () => {
    const ids = operations.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const missing = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)]
      .map(([, pointer = '']) => pointer)
      .filter((pointer) => at(document, pointer.split('/')) === undefined)
    expect(missing).toEqual([])
  })

  test('every parameter in a path is declared, required and in that path', () => {
    for (const [path, methods] of Object.entries(paths))
      for (const { parameters = [], operationId } of Object.values(methods)) {
        const declared = parameters.filter((one) => one.in === 'path')
        const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
        expect([operationId, declared.map(({ name }) => name)]).toEqual([operationId, named as string[]])
        expect(declared.every(({ required }) => required === true)).toBe(true)
      }
  })

  test('it contains no key and no folder of the build machine', () => {
    const text = JSON.stringify(document)
    expect(['sk-clb', process.cwd(), homedir()].filter((word) => text.includes(word))).toEqual([])
  })
})

describe('what it says about gates', () => {
  test('a permission is the role of the session; a model route takes a key, or none if keys are optional', () => {
    expect(documented('POST /api/accounts/{id}/pause').security).toEqual([{ session: ['accounts:write'] }])
    expect(documented('GET /api/dashboard-roles').security).toEqual([
      { session: ['users:manage'] },
      { session: ['roles:manage'] },
    ])
    expect(documented('GET /v1/usage').security).toEqual([{ clientKey: [] }])
    expect(documented('POST /v1/responses').security).toEqual([{ clientKey: [] }, {}])
    expect(documented('GET /health').security).toEqual([])
  })

  test('step-up, audit event and capability rule match the route table', () => {
    for (const row of rows) {
      const extension = documented(getName({ ...row, path: templated(row.path) }))['x-sluice']
      expect(extension).toEqual({
        ...row.access[0],
        ...(row.capability && { capability: row.capability }),
        ...(row.isPlanned && { planned: true }),
      })
    }
  })

  test('errors are those of gate and input, in the envelope of the path', () => {
    const { responses } = documented('POST /api/firewall/ips')
    expect(responses['401']?.['x-codes']).toContain('authentication_required')
    expect(responses['403']?.['x-codes']).toEqual([
      'totp_enrollment_required',
      'step_up_required',
      'step_up_unavailable',
      'cross_site_request_rejected',
      'permission_required',
    ])
    expect(responses['409']?.['x-codes']).toEqual(['ip_exists'])
    expect(responses['422']?.['x-codes']).toEqual(['validation_error'])
    expect(JSON.stringify(responses)).toContain('dashboardError')
    expect(JSON.stringify(documented('POST /v1/responses').responses)).toContain('openaiError')
    expect(documented('POST /backend-api/codex/responses').responses['400']?.['x-codes']).toContain('payload_too_large')
  })
})

describe('bodies', () => {
  test('the schema of every route that checks its body is in it', () => {
    expect(withBody.length).toBeGreaterThan(40)
    const checking = rows.filter(({ inputs }) => inputs.some((input) => input.in === 'body'))
    expect(withBody.map(({ method, route }) => `${method} ${route}`)).toEqual(checking.map(getName))
  })

  test.each(withBody.map((one) => [`${one.method} ${one.route}`, one] as const))(
    'the example of %s is accepted by its route, and by the document',
    (_, operation) => {
      const example = getExample(operation)
      expect(operation.body.schema.safeParse(example)).toMatchObject({ success: true })
      expect(z.fromJSONSchema(operation.body.json as never).safeParse(example)).toMatchObject({ success: true }) // as: its own type for it is not exported
    },
  )

  test.each(withBody.map((one) => [`${one.method} ${one.route}`, one] as const))(
    'the required fields of %s are exactly those the route requires',
    (_, { body }) => {
      const required = body.json.required ?? []
      const missing = body.schema.safeParse({})
      const named = (missing.error?.issues ?? []).map(({ path }) => String(path[0]))
      expect(required.filter((name) => !named.includes(name))).toEqual([])
      for (const [name, schema] of Object.entries(body.schema.shape))
        expect([name, schema.safeParse(undefined).success]).toEqual([name, !required.includes(name)])
    },
  )

  test('the route rejects an unknown field that the document forbids', () => {
    for (const { body, ...operation } of withBody) {
      const result = body.schema.safeParse({ ...(getExample({ body, ...operation }) as object), nobodyKnows: 1 })
      expect([operation.id, result.success]).toEqual([operation.id, body.json.additionalProperties !== false])
    }
  })

  test('choices of a normalized text are choices, and a setting states its default', () => {
    const key = operations.find(({ id }) => id === 'postApiApiKeysSlash')?.body?.json.properties
    expect(key?.enforcedServiceTier?.enum).toEqual(['auto', 'default', 'priority', 'flex', 'ultrafast', null])
    expect(key?.expiresAt).toMatchObject({ type: ['string', 'null'], format: 'date-time' })
    const settings = operations.find(({ id }) => id === 'patchApiSettings')?.body?.json.properties
    expect(settings?.connectTimeoutSeconds?.description).toEndWith('Default: 8 seconds.')
    expect(settings?.guestAccessEnabled?.description).toEndWith('Default: false. A security setting.')
    expect(settings?.connectTimeoutSeconds).not.toHaveProperty('default')
  })

  test('a body shared by several routes is defined once', () => {
    const references = ['POST /api/api-keys', 'POST /api/api-keys/'].map(
      (name) => documented(name).requestBody?.content['application/json']?.schema.$ref,
    )
    expect(references).toEqual(Array(2).fill('#/components/schemas/postApiApiKeysSlashBody'))
  })
})

const templated = (path: string): string => path.replaceAll(/:(\w+)(\{[^/]+\})?/g, '{$1}')

const getPrefixes = (path: string): string[] => {
  const parts = path.split('/').map((part) => part.replace(/\{.+\}$/, ''))
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}

const at = (value: unknown, keys: readonly string[]): unknown =>
  keys.reduce<unknown>(
    (inner, key) => (inner as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/')],
    value,
  )
