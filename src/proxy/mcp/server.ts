/** The tools of the MCP server, all read-only and limited to the key that asks. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Ctx } from '../../boot/bindings.ts'
import { VERSION } from '../../boot/version.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { lastFailure } from '../../model/log/last-failure.ts'
import { CapacityQuestion, getCapacity } from '../handlers/capacity.ts'
import { getKeyUsage } from '../handlers/key-usage.ts'
import { getPublicModels } from '../handlers/models.ts'

/** Answers one POST. */
export const answer = async (c: Ctx, key: KeyPolicy): Promise<Response> => {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  const server = newServer(c, key)
  await server.connect(transport)
  return transport.handleRequest(c.req.raw)
}

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const

const newServer = (c: Ctx, key: KeyPolicy): McpServer => {
  const server = new McpServer({ name: 'sluice', version: VERSION })
  server.registerTool(
    'capacity',
    {
      title: 'Capacity',
      description:
        'Whether a request with this key could start now, or how many seconds it has to wait and why. Also what is left of the account pool and of the limits of the key. Call it before a long task to decide whether to start, wait, or choose a smaller model.',
      inputSchema: CapacityQuestion.shape,
      annotations: READ_ONLY,
    },
    (question) => toResult(getCapacity(c.env, key, question)),
  )
  server.registerTool(
    'usage',
    {
      title: 'Usage',
      description: 'Requests, tokens and cost of this key so far, and what is left of its limits.',
      annotations: READ_ONLY,
    },
    async () => toResult(await getKeyUsage(c.env, key)),
  )
  server.registerTool(
    'models',
    { title: 'Models', description: 'The models this key may use.', annotations: READ_ONLY },
    async () => {
      const { bytes } = await getPublicModels(c)
      return toResult(JSON.parse(new TextDecoder().decode(bytes)))
    },
  )
  server.registerTool(
    'why_last_request_failed',
    {
      title: 'Why the last request failed',
      description:
        'The newest failed request of this key among its last 1,000: when, which model, the error and its code, and how many requests succeeded since. request is null if none failed.',
      annotations: READ_ONLY,
    },
    async () => {
      await c.env.ledger.flush()
      return toResult(await lastFailure(c.env.db, key.id))
    },
  )
  return server
}

const toResult = (value: Record<string, unknown>) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(value) }],
  structuredContent: value,
})
