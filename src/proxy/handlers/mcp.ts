/** `/mcp`: a read-only MCP server for questions about the key's own capacity and requests. */
import { AppError } from '../../errors.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getKeyPolicy } from './key-usage.ts'

/** Answers each request separately as JSON, without sessions. The SDK is loaded with the first request. */
export const answerMcp = createHandlers(clientKey('always'), restricted('local'), async (c) => {
  const { answer } = await import('../mcp/server.ts')
  return answer(c, getKeyPolicy(c))
})

/** Rejects opening and ending streams, because there are no sessions (MCP 2025-11-25, Streamable HTTP). */
export const rejectMcpStream = createHandlers(clientKey('always'), restricted('local'), () => {
  throw new AppError('method_not_allowed', { headers: { allow: 'POST' } })
})
