/** The OpenAPI 3.1 document, generated from the operations. */

import type { Refusal } from '../../views/docs/text.tsx'
import { VERSION } from '../boot/version.ts'
import { CODES } from '../errors.ts'
import { getExample } from './examples.ts'
import { GROUPS } from './groups.ts'
import type { JsonSchema } from './json-schema.ts'
import type { Operation, Parameter } from './operations.ts'

/** The server address is relative, so the document is valid wherever it is fetched. */
export const openApi = (operations: readonly Operation[]) => {
  const bodies = sharedBodies(operations)
  return {
    openapi: '3.1.0',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: { title: 'Sluice', version: VERSION, description: ABOUT, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'The server this was fetched from.' }],
    tags: GROUPS.map(({ id, title, about }) => ({ name: id, description: `${title}. ${about}` })),
    paths: getPaths(operations, bodies),
    components: {
      schemas: { ...ERROR_SCHEMAS, ...Object.fromEntries([...bodies.values()].map(({ name, json }) => [name, json])) },
      responses: ERROR_RESPONSES,
      securitySchemes: SECURITY_SCHEMES,
    },
  }
}

const ABOUT = [
  'Generated from the route table and the schemas of the running server.',
  'If a response has no schema, its description says what it contains.',
  'The dashboard API also accepts HTML forms. A browser without JavaScript then gets a redirect (303).',
  'Model routes send `Retry-After` with 429 and 503, except with `database_unavailable` or if retrying cannot help (`X-Should-Retry: false`). With 500, 502 and 504 they send it if ChatGPT did. The dashboard API sends it with 429.',
  '`x-sluice` lists the permission that each operation requires and its audit event.',
].join(' ')

const getPaths = (operations: readonly Operation[], bodies: SharedBodies) => {
  const byPath = Map.groupBy(operations, ({ path }) => path)
  return Object.fromEntries(
    [...byPath].map(([path, some]) => [
      path,
      Object.fromEntries(some.map((one) => [one.method.toLowerCase(), operationObject(one, bodies)])),
    ]),
  )
}

const operationObject = (operation: Operation, bodies: SharedBodies) => {
  const { words, parameters } = operation
  const requestBody = getRequestBody(operation, bodies)
  return {
    operationId: operation.id,
    tags: [operation.group],
    summary: words.does,
    ...(parameters.length > 0 && { parameters: parameters.map(parameterObject) }),
    ...(requestBody && { requestBody }),
    responses: getResponses(operation),
    security: getSecurity(operation),
    'x-sluice': getExtension(operation),
  }
}

const parameterObject = ({ name, in: where, isRequired, schema: { description, ...schema } }: Parameter) => ({
  name,
  in: where,
  ...(isRequired && { required: true }),
  ...(description && { description }),
  schema,
})

const getRequestBody = (operation: Operation, bodies: SharedBodies) => {
  const { body, words } = operation
  if (words.files) return { required: true, content: { 'multipart/form-data': { schema: filesSchema(words.files) } } }
  const example = getExample(operation)
  const examples = example === null ? {} : { example }
  if (words.document)
    return {
      description: words.document,
      required: true,
      content: { 'application/json': { schema: { type: 'object' }, ...examples } },
    }
  if (!body) return null
  const shared = bodies.get(body.schema)
  const schema = shared ? { $ref: `#/components/schemas/${shared.name}` } : body.json
  const isRequired = (body.json.required ?? []).length > 0
  return { ...(isRequired && { required: true }), content: { 'application/json': { schema, ...examples } } }
}

const filesSchema = ([field, description]: readonly [string, string]): object => ({
  type: 'object',
  properties: { [field]: { type: 'array', items: { type: 'string', format: 'binary' }, description } },
  required: [field],
})

type SharedBodies = ReadonlyMap<object, { name: string; json: JsonSchema }>

/** Bodies used by several operations appear once. */
const sharedBodies = (operations: readonly Operation[]): SharedBodies => {
  const withBody = operations.flatMap(({ id, body }) => (body ? [{ id, ...body }] : []))
  const several = [...Map.groupBy(withBody, ({ schema }) => schema)].filter(([, some]) => some.length > 1)
  return new Map(several.map(([schema, [first]]) => [schema, { name: `${first?.id}Body`, json: first?.json ?? {} }]))
}

const getResponses = (operation: Operation): Record<string, object> => ({
  [operation.isPlanned ? '404' : String(operation.words.status ?? 200)]: getSuccess(operation),
  ...(operation.words.leadsOn && { '302': { description: 'Redirects to the page you need first.' } }),
  ...Object.fromEntries(operation.refusals.all.map((refusal) => [refusal.status, refusalObject(operation, refusal)])),
  default: { $ref: `#/components/responses/${operation.envelope}` },
})

const getSuccess = ({ words, isPage }: Operation): object => {
  const description = words.answer ?? (isPage ? 'The page.' : 'Done.')
  const type = words.type ?? (isPage ? 'text/html' : 'application/json')
  const isEmpty = words.status !== undefined && words.status !== 201
  return { description, ...(!isEmpty && { content: { [type]: {} } }) }
}

const refusalObject = ({ envelope }: Operation, { codes }: Refusal): object => ({
  description: codes.map((code) => `\`${code}\``).join(', '),
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${envelope}Error` } } },
  'x-codes': codes,
})

/** Permissions are listed as roles, which schemes without scopes allow. */
const getSecurity = ({ access }: Operation): object[] => {
  switch (access.access) {
    case 'open':
      return []
    case 'client-key':
      return [{ clientKey: [] }, ...(access.key === 'optional' ? [{}] : [])]
    case 'permission':
      return [access.permission, access.or ?? []].flat().map((one) => ({ session: [one, access.and ?? []].flat() }))
    case 'writes':
    case 'signed-in':
      return [{ session: [] }]
  }
}

const getExtension = ({ access, capability, isPlanned }: Operation): object => ({
  ...access,
  ...(capability && { capability }),
  ...(isPlanned && { planned: true }),
})

const ERROR_SCHEMAS = {
  dashboardError: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: {
          code: { type: 'string', enum: Object.keys(CODES) },
          message: { type: 'string', description: 'What happened and what to do.' },
          param: { type: 'string', description: 'The field, parameter or permission it is about.' },
          details: { type: 'object', description: 'More details. They depend on the code.' },
        },
      },
    },
  },
  openaiError: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['message', 'type', 'code', 'param'],
        properties: {
          message: { type: 'string', description: 'What happened and what to do.' },
          type: { type: 'string' },
          code: { type: 'string', description: 'The code of Sluice or of ChatGPT.' },
          param: { type: ['string', 'null'] },
        },
      },
    },
  },
} as const

const ANY_OTHER = 'Any other error, in the same form: `bad_host`, `database_unavailable`, `internal_error`.'
const ERROR_RESPONSES = {
  dashboard: {
    description: ANY_OTHER,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/dashboardError' } } },
  },
  openai: {
    description: ANY_OTHER,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/openaiError' } } },
  },
} as const

const SECURITY_SCHEMES = {
  clientKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key. While keys are optional, clients on the same machine don’t need one.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'sluice_session',
    description:
      'Set when you sign in. On HTTPS its name begins with `__Host-`. Not needed if a reverse proxy signs users in, or on the server itself until a user exists.',
  },
} as const
