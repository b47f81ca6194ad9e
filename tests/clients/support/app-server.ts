/** The Codex CLI as an editor runs it: `codex app-server`, JSON-RPC lines over stdio, one long-lived process. */

/** What became of one turn, as the editor shows it. */
export interface TurnSeen {
  status: 'completed' | 'interrupted' | 'failed'
  /** Every agent message, one per line. */
  text: string
  commands: { command: string; output: string; exitCode: number | null }[]
  compactions: number
  /** All other messages to the user: errors, including "Reconnecting…", and warnings. */
  complaints: string[]
}

export interface Thread {
  id: string
  /** One turn of the person; `model` is for this turn and the following ones. Rejects after 30 s. */
  say(prompt: string, options?: { model?: string }): Promise<TurnSeen>
  /** What `/compact` does. */
  compact(): Promise<TurnSeen>
}

export interface AppServer extends AsyncDisposable {
  startThread(): Promise<Thread>
  /** The limits last reported with a request, as `/status` shows them; null before the first. */
  limits(): Limits | null
  /** Reads the limits from `chatgpt_base_url`, as Codex and Desktop do at start. Rejects with the client's error. */
  readLimits(): Promise<Limits>
  /** Everything the process wrote to stderr so far. */
  stderr(): string
}

export interface Limits {
  primary: LimitWindow | null
  secondary: LimitWindow | null
  planType: string | null
  [member: string]: unknown
}

interface LimitWindow {
  usedPercent: number
  windowDurationMins: number | null
  resetsAt: number | null
}

type AppServerProcess = Bun.Subprocess<'pipe', 'pipe', 'pipe'>

interface Message {
  id?: number
  method?: string
  params?: Params
  result?: Result
  error?: { message: string }
}

/** Each method has its own members. */
interface Result {
  thread: { id: string }
  rateLimits: Limits
}

/** The fields of the notifications used here; which are present depends on the method. */
interface Params {
  threadId?: string | null
  message?: string
  summary?: string
  error?: { message: string }
  turn?: { id: string; status: TurnSeen['status'] | 'inProgress'; error: { message: string } | null }
  item?: { type: string; text?: string; command?: string; aggregatedOutput?: string | null; exitCode?: number | null }
  rateLimits?: Limits
  fromModel?: string
  toModel?: string
}

const TURN_LIMIT_MS = 60_000
/** No approval requests: these threads run in a home folder of the test. */
const FREE_HAND = { approvalPolicy: 'never', sandbox: 'danger-full-access' }

/** Takes over a process that was started as `codex app-server`, and introduces itself. */
export async function driveAppServer(child: AppServerProcess): Promise<AppServer> {
  const wire = new Wire(child)
  await wire.ask('initialize', {
    clientInfo: { name: 'sluice_test', title: null, version: '1.0.0' },
    capabilities: null,
  })
  wire.send({ method: 'initialized' })
  return {
    async startThread() {
      const { thread } = await wire.ask('thread/start', FREE_HAND)
      return getThread(wire, thread.id)
    },
    limits: () => wire.limits,
    async readLimits() {
      const { rateLimits } = await wire.ask('account/rateLimits/read', {})
      return rateLimits
    },
    stderr: () => wire.stderr,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL') // an editor that closes does no less
      await child.exited
    },
  }
}

function getThread(wire: Wire, id: string): Thread {
  return {
    id,
    say: (prompt, { model } = {}) => {
      const input = [{ type: 'text', text: prompt, text_elements: [] }]
      return wire.turn('turn/start', { threadId: id, input, ...(model !== undefined && { model }) })
    },
    compact: () => wire.turn('thread/compact/start', { threadId: id }),
  }
}

class Wire {
  readonly #child: AppServerProcess
  readonly #answers = new Map<number, PromiseWithResolvers<NonNullable<Message['result']>>>()
  #turn: { threadId: string; seen: TurnSeen; ended: PromiseWithResolvers<TurnSeen> } | null = null
  #lastId = 0
  stderr = ''
  limits: Limits | null = null

  constructor(child: AppServerProcess) {
    this.#child = child
    void this.#read()
    void this.#readErrors()
  }

  send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`)
    void this.#child.stdin.flush()
  }

  async ask(method: string, params: object): Promise<NonNullable<Message['result']>> {
    const id = ++this.#lastId
    const answer = Promise.withResolvers<NonNullable<Message['result']>>()
    this.#answers.set(id, answer)
    this.send({ id, method, params })
    return await within(answer.promise, () => `codex app-server did not answer ${method}.\n${this.stderr}`)
  }

  /** Starts a turn and waits for its end. One at a time. */
  async turn(method: string, params: { threadId: string; [field: string]: unknown }): Promise<TurnSeen> {
    const seen: TurnSeen = { status: 'failed', text: '', commands: [], compactions: 0, complaints: [] }
    const ended = Promise.withResolvers<TurnSeen>()
    this.#turn = { threadId: params.threadId, seen, ended }
    await this.ask(method, params)
    const turn = await within(
      ended.promise,
      () => `The turn did not end; so far ${JSON.stringify(seen)}\n${this.stderr}`,
    )
    this.#turn = null
    return turn
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of this.#child.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#take(JSON.parse(line))
    }
    const why = new Error(`codex app-server ended.\n${this.stderr}`)
    for (const answer of this.#answers.values()) answer.reject(why)
    this.#turn?.ended.reject(why)
  }

  async #readErrors(): Promise<void> {
    const decoder = new TextDecoder()
    for await (const chunk of this.#child.stderr) this.stderr += decoder.decode(chunk, { stream: true })
  }

  #take({ id, method, params = {}, result, error }: Message): void {
    const answer = this.#answers.get(id ?? 0)
    if (method !== undefined) this.#note(method, params)
    else if (result) answer?.resolve(result)
    else answer?.reject(new Error(error?.message ?? 'An answer without a result.'))
  }

  #note(method: string, params: Params): void {
    if (method === 'account/rateLimits/updated') this.limits = params.rateLimits ?? null
    if (!this.#turn || (params.threadId ?? this.#turn.threadId) !== this.#turn.threadId) return
    const { seen, ended } = this.#turn
    seen.complaints.push(...complaintsIn(method, params))
    if (method === 'item/completed' && params.item) noteItem(seen, params.item)
    if (method !== 'turn/completed' || !params.turn || params.turn.status === 'inProgress') return
    seen.status = params.turn.status
    ended.resolve(seen)
  }
}

function noteItem(
  seen: TurnSeen,
  { type, text = '', command = '', aggregatedOutput, exitCode }: NonNullable<Params['item']>,
): void {
  if (type === 'agentMessage') seen.text += seen.text === '' ? text : `\n${text}`
  else if (type === 'contextCompaction') seen.compactions += 1
  else if (type === 'commandExecution')
    seen.commands.push({ command, output: aggregatedOutput ?? '', exitCode: exitCode ?? null })
}

const WARNINGS = new Set(['warning', 'guardianWarning', 'configWarning', 'deprecationNotice'])

function complaintsIn(method: string, { message, summary, error, fromModel, toModel }: Params): string[] {
  if (method === 'error') return [error?.message ?? method]
  if (method === 'model/rerouted') return [`${method}: ${fromModel} to ${toModel}`]
  return WARNINGS.has(method) ? [message ?? summary ?? method] : []
}

async function within<Value>(promise: Promise<Value>, sentence: () => string): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(sentence())), TURN_LIMIT_MS)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
