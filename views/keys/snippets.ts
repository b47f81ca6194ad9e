/** What to paste into a client so that it asks here: texts for the address and the key that are really in use. */

export interface Connection {
  /** Origin of the service as the browser reaches it, without a trailing slash. */
  baseUrl: string
  /** The key itself, or what stands for it once it is not known any more. */
  key: string
  /** A model the key may use. */
  model: string
  /** Whether the key may use no other; else native clients choose by themselves. */
  isOnlyModel: boolean
}

interface Snippet {
  id: string
  label: string
  /** In the order in which they are needed. */
  parts: readonly Part[]
}

interface Part {
  /** Where it goes, as a sentence; what stands between backquotes is code. */
  where: string
  text: string
}

/** Stands where a key was: it is shown once. */
export const KEY_PLACEHOLDER = '<your key>'
/** The variable the native client reads the key from. */
export const KEY_FROM_SHELL = 'env_key = "SLUICE_API_KEY"'

/** Every client, the native ones first. */
export const snippets = (to: Connection): readonly Snippet[] => {
  const model = to.isOnlyModel ? to.model : null
  return [
    {
      id: 'codex',
      label: 'Codex CLI',
      parts: [
        { where: 'In `~/.codex/config.toml`:', text: codexConfig(to.baseUrl, KEY_FROM_SHELL, model) },
        { where: 'In the shell that starts it:', text: `export SLUICE_API_KEY=${to.key}` },
      ],
    },
    {
      id: 'ide',
      label: 'IDE extension',
      parts: [
        {
          where: 'It reads the same `~/.codex/config.toml`, but not the variables of your shell:',
          text: codexConfig(to.baseUrl, `experimental_bearer_token = ${quoted(to.key)}`, model),
        },
      ],
    },
    {
      id: 'python',
      label: 'Python',
      parts: [
        { where: 'Once:', text: 'pip install openai' },
        { where: 'Then:', text: pythonProgram(to) },
      ],
    },
    {
      id: 'javascript',
      label: 'JavaScript',
      parts: [
        { where: 'Once:', text: 'npm install openai' },
        { where: 'Then, as a module:', text: javascriptProgram(to) },
      ],
    },
    { id: 'opencode', label: 'OpenCode', parts: [{ where: 'In `opencode.json`:', text: openCodeConfig(to) }] },
    { id: 'curl', label: 'curl', parts: [{ where: 'Asks for one answer:', text: curlCommand(to) }] },
    {
      id: 'other',
      label: 'Other apps',
      parts: [
        {
          where: 'Whatever speaks the OpenAI API has a field for the address and one for the key:',
          text: variables(to),
        },
      ],
    },
  ]
}

/**
 * Sockets first, HTTP where they do not get through, and compaction by the service. `auth` is the line that says where
 * the key is; `model` is named for a key that may use no other, because the client would start with its own choice.
 */
export const codexConfig = (baseUrl: string, auth: string, model: string | null = null): string =>
  [
    ...(model === null ? [] : [`model = ${quoted(model)}`]),
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

/** The two variables that OpenAI's own libraries read. */
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
 * A provider of its own: under the name `openai` the client takes every turn of somebody who signed in to ChatGPT with it
 * straight there. `small_model` writes the titles of conversations.
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

/** What the client would have to guess: without the limit, the budget of the service's models, it compacts too late. */
const OPENCODE_MODEL = {
  attachment: true,
  reasoning: true,
  limit: { context: 272_000, output: 128_000 },
  modalities: { input: ['text', 'image', 'pdf'], output: ['text'] },
}

const curlCommand = ({ baseUrl, key, model }: Connection): string =>
  [
    `curl ${baseUrl}/v1/responses \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    "  -H 'content-type: application/json' \\",
    `  -d '${JSON.stringify({ model, input: 'Say hello.' }).replaceAll("'", "'\\''")}'`,
  ].join('\n')

/** The same escapes hold in TOML, Python and JavaScript. */
const quoted = (text: string): string => JSON.stringify(text)
