/** One process of Claude Code that holds a conversation, as the Agent SDK runs it: JSON lines in and out. */

/** A line of `--output-format stream-json`. Which members are present depends on the type. */
export interface ClaudeLine {
  type: string
  subtype?: string
  session_id?: string
  is_error?: boolean
  result?: string
  error_status?: number
  message?: { content: ClaudeBlock[] }
  event?: { type: string; delta?: { type: string; text?: string } }
  compact_metadata?: { trigger: string }
}

interface ClaudeBlock {
  type: string
  text?: string
  thinking?: string
  signature?: string
}

/** What one message led to. */
export interface ClaudeTurn {
  isError: boolean
  /** The last text of the model, or the error that the user sees. */
  text: string
  sessionId: string
  /** Type and subtype of every line that was printed: `assistant`, `system/api_retry`. */
  kinds: string[]
  lines: ClaudeLine[]
}

export interface ClaudeChat extends AsyncDisposable {
  /** Sends a message or a slash command, and waits for its end. Rejects after 100 s, and when the process ends. */
  say(prompt: string): Promise<ClaudeTurn>
  /** Stops the running turn, like Esc. */
  interrupt(): void
  /** Ends the process, like Ctrl-C. */
  stop(): Promise<void>
  /** Everything that was printed. */
  readonly lines: readonly ClaudeLine[]
  stderr(): string
}

type ChatProcess = Bun.Subprocess<'pipe', 'pipe', 'pipe'>

const TURN_LIMIT_MS = 100_000

/** Takes over a process that was started with JSON lines as input and output. */
export function driveClaudeChat(child: ChatProcess): ClaudeChat {
  const lines: ClaudeLine[] = []
  let stderr = ''
  let seen = 0
  let turn: PromiseWithResolvers<ClaudeTurn> | null = null
  const fail = (why: string) => turn?.reject(new Error(`${why}\n${kindsOf(lines).join(' ')}\n${stderr}`))
  const send = (message: unknown) => {
    child.stdin.write(`${JSON.stringify(message)}\n`)
    child.stdin.flush()
  }
  const receive = (line: ClaudeLine) => {
    lines.push(line)
    if (line.type !== 'result') return
    turn?.resolve(summary(lines.slice(seen), line))
    seen = lines.length
  }
  void eachLine(child.stdout, (text) => receive(JSON.parse(text))).then(() => fail('Claude Code has ended.'))
  void eachLine(child.stderr, (text) => {
    stderr += `${text}\n`
  })
  const end = async (signal: 'SIGINT' | 'SIGKILL') => {
    turn?.promise.catch(() => {}) // it may no longer be awaited
    child.kill(signal)
    await child.exited
  }
  return {
    lines,
    stderr: () => stderr,
    async say(prompt) {
      turn = Promise.withResolvers()
      const deadline = setTimeout(() => fail(`'${prompt}' did not end.`), TURN_LIMIT_MS)
      send({ type: 'user', message: { role: 'user', content: [{ type: 'text', text: prompt }] } })
      try {
        return await turn.promise
      } finally {
        clearTimeout(deadline)
      }
    },
    interrupt: () => send({ type: 'control_request', request_id: 'esc', request: { subtype: 'interrupt' } }),
    stop: () => end('SIGINT'),
    [Symbol.asyncDispose]: () => end('SIGKILL'),
  }
}

const kindsOf = (lines: readonly ClaudeLine[]): string[] =>
  lines.map(({ type, subtype }) => (subtype === undefined ? type : `${type}/${subtype}`))

const summary = (lines: ClaudeLine[], { is_error, result, session_id }: ClaudeLine): ClaudeTurn => ({
  isError: is_error === true,
  text: result ?? '',
  sessionId: session_id ?? '',
  kinds: kindsOf(lines),
  lines,
})

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') take(line)
  }
}
