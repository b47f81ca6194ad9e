/** Names from user agents: of a browser in words people recognize, and of the program that sends requests. */

/** The first match wins: most browsers also name their ancestors. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\/|\bOpera\b/, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:HeadlessChrome|Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
  [/^curl\//, 'curl'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
]

/** `Firefox on Linux`; unknown parts are left out, and null is `Unknown device`. */
export const describeAgent = (userAgent: string | null): string => {
  const browser = getName(BROWSERS, userAgent ?? '')
  const system = getName(SYSTEMS, userAgent ?? '')
  if (browser && system) return `${browser} on ${system}`
  return browser ?? system ?? 'Unknown device'
}

/** The program without its version: `codex_exec`; null: it names none. */
export const clientName = (userAgent: string | null): string | null => userAgent?.match(/^[^\s/]+/)?.[0] ?? null

/** Programs whose own name says little: Claude Code calls itself `claude-cli`. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'claude-cli': 'Claude Code',
  'claude-code': 'Claude Code',
  Anthropic: 'Anthropic SDK',
  AsyncAnthropic: 'Anthropic SDK (async)',
  OpenAI: 'OpenAI SDK',
  AsyncOpenAI: 'OpenAI SDK (async)',
}

/** The name that people know for a `clientName`; others stay. */
export const programName = (client: string): string => (Object.hasOwn(PROGRAMS, client) ? PROGRAMS[client]! : client)

const getName = (table: typeof BROWSERS, userAgent: string): string | undefined =>
  table.find(([pattern]) => pattern.test(userAgent))?.[1]
