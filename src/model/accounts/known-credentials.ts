/** Credential files that are recognised but cannot be imported, with advice. */
import { getObject } from '../../lib/json.ts'

/**
 * What a file without usable tokens is, as the end of a sentence starting with its name; null: not recognised. Never
 * repeats file contents. `file` is the parsed JSON.
 */
export const knownCredentials = (file: Record<string, unknown>): string | null => {
  const known = KNOWN.find(({ matches }) => matches(file))
  return known ? `${known.what}. ${known.todo}` : null
}

interface Known {
  matches: (file: Record<string, unknown>) => boolean
  what: string
  todo: string
}

const SIGN_IN = 'Run `codex login`, sign in with ChatGPT, and import the new auth.json'
const OTHER_TOOL = 'Sluice imports the auth.json of the Codex CLI: run `codex login` and import ~/.codex/auth.json'

const hasText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''

const hasEntry = (file: Record<string, unknown>, isOne: (entry: Record<string, unknown>) => boolean): boolean =>
  Object.values(file).some((entry) => isOne(getObject(entry)))

/** The first match counts. Codex CLI formats are from its sources; those of other tools are assumed. */
const KNOWN: readonly Known[] = [
  {
    matches: ({ auth_mode: mode }) => mode === 'chatgptAuthTokens',
    what: 'has tokens that another app manages and renews',
    todo: SIGN_IN,
  },
  {
    matches: ({ personal_access_token: token }) => hasText(token),
    what: 'is from the Codex CLI with a personal access token, which is not a ChatGPT sign-in',
    todo: SIGN_IN,
  },
  {
    matches: ({ auth_mode: mode, agent_identity: identity }) => mode === 'agentIdentity' || Boolean(identity),
    what: 'is from the Codex CLI with an agent identity, which is not a ChatGPT sign-in',
    todo: SIGN_IN,
  },
  {
    matches: ({ auth_mode: mode, OPENAI_API_KEY: key }) => mode === 'apikey' || hasText(key),
    what: 'is from the Codex CLI signed in with an API key, which is not a ChatGPT sign-in',
    todo: SIGN_IN,
  },
  {
    matches: (file) => 'OPENAI_API_KEY' in file || 'tokens' in file || 'auth_mode' in file,
    what: 'is from a Codex CLI that is signed out',
    todo: SIGN_IN,
  },
  { matches: (file) => 'claudeAiOauth' in file, what: 'is a credentials file of Claude Code', todo: OTHER_TOOL },
  {
    matches: ({ type, access_token: token }) => type === 'codex' && hasText(token),
    what: 'is a token file of CLIProxyAPI',
    todo: OTHER_TOOL,
  },
  {
    matches: (file) => hasText(file.access_token) && ('expiry_date' in file || 'scope' in file),
    what: 'is a credentials file of the Gemini CLI',
    todo: OTHER_TOOL,
  },
  {
    matches: (file) => hasEntry(file, ({ oauth_token: token }) => hasText(token)),
    what: 'is a credentials file of GitHub Copilot',
    todo: OTHER_TOOL,
  },
  {
    matches: (file) => hasEntry(file, ({ type }) => type === 'oauth' || type === 'api' || type === 'wellknown'),
    what: 'is an auth.json of OpenCode',
    todo: OTHER_TOOL,
  },
]
