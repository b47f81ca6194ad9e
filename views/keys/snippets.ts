/** The texts that connect a client: the one source for dashboard, demo, README and docs/clients.md (a test compares them). */

export interface Connection {
  /** Origin of Sluice as the browser reaches it, without a trailing slash. */
  baseUrl: string
  /** The key itself, or its placeholder. */
  key: string
  /** A model the key can use. */
  model: string
}

interface Snippet {
  id: string
  label: string
  /** In the order of use. */
  parts: readonly Part[]
  /** What the client shows for a wrong key, as far as tests show. */
  wrongKey: string
}

interface Part {
  /** Where it goes, as a sentence; text between backquotes is code. */
  where: string
  text: string
}

/** Placeholder for the key, which is shown only once. */
export const KEY_PLACEHOLDER = '<your key>'
/** Used while the catalog is empty. */
export const EXAMPLE_MODEL = 'gpt-5.5'
/** The Codex CLI reads the key from this variable. */
export const KEY_FROM_SHELL = 'env_key = "SLUICE_API_KEY"'

/** All clients, Codex first. */
export const snippets = (to: Connection): readonly Snippet[] => {
  const { model } = to
  return [
    {
      id: 'codex',
      label: 'Codex CLI',
      parts: [
        { where: 'In `~/.codex/config.toml`:', text: codexConfig(to.baseUrl, KEY_FROM_SHELL, model) },
        { where: 'In the shell that starts it:', text: `export SLUICE_API_KEY=${to.key}` },
      ],
      wrongKey: CODEX_WRONG_KEY,
    },
    {
      id: 'ide',
      label: 'IDE extension',
      parts: [
        {
          where: 'In `~/.codex/config.toml`, with the key in the file because the extension does not read your shell:',
          text: codexConfig(to.baseUrl, `experimental_bearer_token = ${quoted(to.key)}`, model),
        },
      ],
      wrongKey: CODEX_WRONG_KEY,
    },
    {
      id: 'python',
      label: 'Python',
      parts: [
        { where: 'Install:', text: 'pip install openai' },
        { where: 'Run:', text: pythonProgram(to) },
      ],
      wrongKey: 'Wrong key: `openai.AuthenticationError: Error code: 401`, `Invalid API key`.',
    },
    {
      id: 'javascript',
      label: 'JavaScript',
      parts: [
        { where: 'Install:', text: 'npm install openai' },
        { where: 'Run, as a module:', text: javascriptProgram(to) },
      ],
      wrongKey: 'Wrong key: `AuthenticationError: 401 Invalid API key`.',
    },
    {
      id: 'opencode',
      label: 'OpenCode',
      parts: [{ where: 'In `opencode.json`:', text: openCodeConfig(to) }],
      wrongKey: 'Wrong key: `Invalid API key`.',
    },
    {
      id: 'claude-code',
      label: 'Claude Code',
      parts: [{ where: 'In `~/.claude/settings.json`:', text: claudeCodeSettings(to) }],
      wrongKey: 'Wrong key: `Failed to authenticate. API Error: 401 Invalid API key`.',
    },
    usageSnippet(to),
    {
      id: 'curl',
      label: 'curl',
      parts: [{ where: 'Send one request:', text: curlCommand(to) }],
      wrongKey: 'Wrong key: HTTP 401, `invalid_api_key`.',
    },
    ...mediaSnippets(to),
    {
      id: 'other',
      label: 'Other apps',
      parts: [
        {
          where: 'For any app that uses the OpenAI API, enter this address and key in its settings or environment:',
          text: variables(to),
        },
      ],
      wrongKey: 'Wrong key: HTTP 401, `Invalid API key`.',
    },
  ]
}

const mediaSnippets = (to: Connection): readonly Snippet[] => [
  {
    id: 'images',
    label: 'Images',
    parts: [
      { where: 'Create an image with curl (needs `jq`):', text: curlImage(to) },
      { where: 'Or with Python, after `pip install openai`:', text: pythonImage(to) },
    ],
    wrongKey: 'Wrong key: HTTP 401, `invalid_api_key`.',
  },
  {
    id: 'transcription',
    label: 'Transcription',
    parts: [
      { where: 'Transcribe a file with curl:', text: curlTranscription(to) },
      { where: 'Or with Python, after `pip install openai`:', text: pythonTranscription(to) },
    ],
    wrongKey: 'Wrong key: HTTP 401, `invalid_api_key`.',
  },
]

const CODEX_WRONG_KEY = 'Wrong key: Codex shows `401 Unauthorized` and `Invalid API key`.'

/**
 * WebSockets first, HTTP where they are blocked, and compaction by ChatGPT. `auth` is the line with the key. `model` is
 * set because Codex's own default may not be available to the key or the pool.
 */
export const codexConfig = (baseUrl: string, auth: string, model: string): string =>
  [
    `model = ${quoted(model)}`,
    'model_provider = "sluice"',
    '',
    '[model_providers.sluice]',
    'name = "Sluice"',
    `base_url = "${baseUrl}/backend-api/codex"`,
    'wire_api = "responses"',
    'supports_websockets = true  # false: HTTP only',
    auth,
    `model_catalog_url = "${baseUrl}/backend-api/codex/models"`,
    'capabilities = { remote_compaction = "v2" }',
  ].join('\n')

/** The two variables that OpenAI's SDKs read. */
export const variables = ({ baseUrl, key }: Pick<Connection, 'baseUrl' | 'key'>): string =>
  `export OPENAI_BASE_URL=${baseUrl}/v1\nexport OPENAI_API_KEY=${key}`

const pythonProgram = ({ baseUrl, key, model }: Connection): string =>
  [
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${baseUrl}/v1", api_key=${quoted(key)})`,
    `response = client.responses.create(model=${quoted(model)}, input="Say hello.")`,
    'print(response.output_text)',
  ].join('\n')

const javascriptProgram = ({ baseUrl, key, model }: Connection): string =>
  [
    'import OpenAI from "openai"',
    '',
    `const client = new OpenAI({ baseURL: "${baseUrl}/v1", apiKey: ${quoted(key)} })`,
    `const response = await client.responses.create({ model: ${quoted(model)}, input: "Say hello." })`,
    'console.log(response.output_text)',
  ].join('\n')

/**
 * A separate provider: under the name `openai`, OpenCode bypasses Sluice if the user signed in to ChatGPT with it.
 * `small_model` writes conversation titles.
 */
const openCodeConfig = ({ baseUrl, key, model }: Connection): string => {
  const sluice = {
    npm: '@ai-sdk/openai',
    name: 'Sluice',
    options: { baseURL: `${baseUrl}/v1`, apiKey: key },
    models: { [model]: OPENCODE_MODEL },
  }
  const config = {
    $schema: 'https://opencode.ai/config.json',
    model: `sluice/${model}`,
    small_model: `sluice/${model}`,
    provider: { sluice },
  }
  return JSON.stringify(config, null, 2)
}

/** OpenCode does not know these: without the ChatGPT models' limit it compacts too late. */
const OPENCODE_MODEL = {
  attachment: true,
  reasoning: true,
  limit: { context: 272_000, output: 128_000 },
  modalities: { input: ['text', 'image', 'pdf'], output: ['text'] },
}

/**
 * Without the default models, Claude Code uses the main model also for titles and summaries. The context settings are
 * needed because Claude Code assumes a million tokens for unknown model names. The last settings make it contact only
 * Sluice (2.1.332).
 */
const claudeCodeSettings = ({ baseUrl, key, model }: Connection): string =>
  JSON.stringify(
    {
      env: {
        ANTHROPIC_BASE_URL: baseUrl,
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_MODEL: `claude-${model}`,
        ANTHROPIC_DEFAULT_OPUS_MODEL: 'claude-opus',
        ANTHROPIC_DEFAULT_SONNET_MODEL: 'claude-sonnet',
        ANTHROPIC_DEFAULT_HAIKU_MODEL: 'claude-haiku',
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: CONTEXT,
        CLAUDE_CODE_AUTO_COMPACT_WINDOW: CONTEXT,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: '1',
      },
      skipWebFetchPreflight: true,
      permissions: { defaultMode: 'default' },
    },
    null,
    2,
  )

const CONTEXT = '272000'

const usageSnippet = (to: Connection): Snippet => ({
  id: 'usage',
  label: 'Menu bar and Desktop',
  parts: [
    {
      where:
        'For ChatGPT Desktop and menu bar tools such as CodexBar, signed in with an account of the pool. Put this in `~/.codex/config.toml`, above the first `[section]`. Leave it out if a provider there has `requires_openai_auth = true`, or the Codex CLI does not start:',
      text: usageConfig(to),
    },
    { where: 'For other tools, read the usage of the pool with your key:', text: fleetCommand(to) },
  ],
  wrongKey: 'Wrong key: HTTP 401, `invalid_api_key`.',
})

/** Codex asks below this address for `/wham/usage`. */
const usageConfig = ({ baseUrl }: Pick<Connection, 'baseUrl'>): string =>
  `chatgpt_base_url = ${quoted(`${baseUrl}/backend-api`)}`

const fleetCommand = ({ baseUrl, key }: Pick<Connection, 'baseUrl' | 'key'>): string =>
  `curl ${baseUrl}/api/fleet/summary \\\n  -H 'authorization: Bearer ${key}'`

const curlCommand = ({ baseUrl, key, model }: Connection): string =>
  [
    `curl ${baseUrl}/v1/responses \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    "  -H 'content-type: application/json' \\",
    `  -d '${JSON.stringify({ model, input: 'Say hello.' }).replaceAll("'", "'\\''")}'`,
  ].join('\n')

/** No catalog lists the image models; this is the newest. */
const IMAGE_MODEL = 'gpt-image-2'
const IMAGE_PROMPT = 'A lighthouse at dawn'

const curlImage = ({ baseUrl, key }: Connection): string =>
  [
    `curl ${baseUrl}/v1/images/generations \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    "  -H 'content-type: application/json' \\",
    `  -d '${JSON.stringify({ model: IMAGE_MODEL, prompt: IMAGE_PROMPT })}' \\`,
    "  | jq -r '.data[0].b64_json' | base64 -d > image.png",
  ].join('\n')

const pythonImage = ({ baseUrl, key }: Connection): string =>
  [
    'import base64',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${baseUrl}/v1", api_key=${quoted(key)})`,
    `image = client.images.generate(model="${IMAGE_MODEL}", prompt=${quoted(IMAGE_PROMPT)})`,
    'open("image.png", "wb").write(base64.b64decode(image.data[0].b64_json))',
  ].join('\n')

/** The only one; apps with `whisper-1` built in get it too. */
const TRANSCRIPTION_MODEL = 'gpt-4o-transcribe'

const curlTranscription = ({ baseUrl, key }: Connection): string =>
  [
    `curl ${baseUrl}/v1/audio/transcriptions \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    `  -F model=${TRANSCRIPTION_MODEL} \\`,
    '  -F file=@speech.mp3',
  ].join('\n')

const pythonTranscription = ({ baseUrl, key }: Connection): string =>
  [
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${baseUrl}/v1", api_key=${quoted(key)})`,
    `transcript = client.audio.transcriptions.create(model="${TRANSCRIPTION_MODEL}", file=open("speech.mp3", "rb"))`,
    'print(transcript.text)',
  ].join('\n')

/** These escapes are valid in TOML, Python and JavaScript. */
const quoted = (text: string): string => JSON.stringify(text)
