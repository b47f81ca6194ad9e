/** Decides what the stand-in model responds: scripted responses, and a default that can drive a real coding client. */
import type { Account } from './accounts.ts'

/** A JSON object of the wire. */
export type Json = Record<string, unknown>

/** A validated request, which scripts get and events are created from. */
export type Turn = {
  account: Account
  model: string
  body: Json
  input: Json[]
  /** Length of the body as received; the default for input tokens is a quarter of it. */
  bodyChars: number
  headers: Record<string, string>
}

export type AnswerItem =
  | { kind: 'text'; text: string; phase?: string }
  | { kind: 'reasoning'; summary: string }
  | { kind: 'functionCall'; name: string; arguments: string; namespace?: string }
  | { kind: 'customToolCall'; name: string; input: string; namespace?: string }
  | { kind: 'compaction' }
  | { kind: 'bulk'; deltas: number; bytes: number }

export type TokenUsage = { inputTokens: number; cachedTokens: number; outputTokens: number; reasoningTokens: number }

export type Answer = {
  items: AnswerItem[]
  usage?: Partial<TokenUsage>
  /** Characters per delta event of a text or tool input; 24 by default. */
  deltaChars?: number
  /** Events per write; 1 by default. */
  perChunk?: number
  /** Pause between events. */
  dripMs?: number
  /** The last event waits until this is false. */
  isHeld?: boolean
  /** Encode once and replay the same bytes, ids included, to every client; for load, not for behavior. */
  precomputed?: boolean
}

export type Script = (turn: Turn) => Answer | null

type AnswerOptions = Omit<Answer, 'items'>

/** Ready-made responses. */
export const answers = {
  text: (text: string, options: AnswerOptions = {}): Answer => ({ items: [{ kind: 'text', text }], ...options }),
  /** One message of `deltas` delta events with `bytes` characters each. */
  bulk: (deltas: number, bytes: number, options: AnswerOptions = {}): Answer => ({
    items: [{ kind: 'bulk', deltas, bytes }],
    ...options,
  }),
  /** With `arguments` a function call, with `input` a custom tool call. */
  toolCall: (
    call: { name: string; namespace?: string } & ({ arguments: string } | { input: string }),
    options: AnswerOptions = {},
  ): Answer => ({
    items: ['input' in call ? { kind: 'customToolCall', ...call } : { kind: 'functionCall', ...call }],
    ...options,
  }),
  compaction: (options: AnswerOptions = {}): Answer => ({ items: [{ kind: 'compaction' }], ...options }),
  items: (items: AnswerItem[], options: AnswerOptions = {}): Answer => ({ items, ...options }),
} as const

/**
 * The response without a script: one compaction item for a trigger, a tool call for `run: <command>` in the last user
 * message, a quote of the output after a tool ran, else a greeting that names the account.
 */
export function defaultAnswer(turn: Turn): Answer {
  if (turn.input.at(-1)?.type === 'compaction_trigger') return answers.compaction()
  const reasoning: AnswerItem[] =
    wantsCiphertext(turn) || wantsSummary(turn) ? [{ kind: 'reasoning', summary: '**Thinking** it over' }] : []
  return { items: [...reasoning, mainItem(turn)] }
}

function mainItem(turn: Turn): AnswerItem {
  const lastUser = turn.input.findLastIndex((item) => item.role === 'user')
  const output = turn.input.findLast((item, index) => index > lastUser && String(item.type).endsWith('_call_output'))
  if (output) return { kind: 'text', text: `The tool said: ${getText(output.output)}`, phase: 'final_answer' }
  const command = /run: (.+)/.exec(getText(turn.input[lastUser]?.content))?.[1]
  const call = command === undefined ? null : shellCall(offeredTools(turn), command.trim())
  return call ?? { kind: 'text', text: `Hello from ${turn.account.email}`, phase: 'final_answer' }
}

/** Whether the request asks for encrypted reasoning. */
export function wantsCiphertext(turn: Turn): boolean {
  return Array.isArray(turn.body.include) && turn.body.include.includes('reasoning.encrypted_content')
}

/** Whether the request asks for summaries of its reasoning; without, there are none. */
export function wantsSummary(turn: Turn): boolean {
  return isJson(turn.body.reasoning) && turn.body.reasoning.summary != null
}

/** The text of a message content or a tool output: a string, or a list of parts. */
export function getText(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map((part) => getText(isJson(part) ? part.text : part)).join('')
  return ''
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type OfferedTool = { name: string; type: string; namespace?: string }

/** Top-level tools and those of `additional_tools` items, namespaces flattened (client-protocol §3.3). */
function offeredTools(turn: Turn): OfferedTool[] {
  const additional = turn.input.filter((item) => item.type === 'additional_tools').map((item) => item.tools)
  return [turn.body.tools, ...additional].flatMap((tools) => flattenTools(tools))
}

function flattenTools(tools: unknown, namespace?: string): OfferedTool[] {
  if (!Array.isArray(tools)) return []
  return tools.filter(isJson).flatMap((tool) => {
    if (tool.type === 'namespace') return flattenTools(tool.tools, String(tool.name))
    return [{ name: String(tool.name), type: String(tool.type), ...(namespace ? { namespace } : {}) }]
  })
}

/** How each known shell tool takes a command, preferred first. */
const SHELL_TOOLS: Record<string, (command: string) => { arguments: string } | { input: string }> = {
  exec: (command) => ({
    input: `const r = await tools.exec_command({cmd: ${JSON.stringify(command)}}); text(typeof r === 'string' ? r : JSON.stringify(r));`,
  }),
  exec_command: (command) => ({ arguments: JSON.stringify({ cmd: command }) }),
  shell_command: (command) => ({ arguments: JSON.stringify({ command }) }),
  shell: (command) => ({ arguments: JSON.stringify({ command: ['bash', '-lc', command] }) }),
}

function shellCall(tools: OfferedTool[], command: string): AnswerItem | null {
  for (const [name, phrase] of Object.entries(SHELL_TOOLS)) {
    const tool = tools.find((offered) => offered.name === name)
    if (!tool) continue
    const call = { name, ...(tool.namespace ? { namespace: tool.namespace } : {}) }
    const phrased = phrase(command)
    return 'input' in phrased
      ? { kind: 'customToolCall', ...call, ...phrased }
      : { kind: 'functionCall', ...call, ...phrased }
  }
  return null
}
