/**
 * Reads YAML: API keys from the CLIProxyAPI configuration, and OpenAI-compatible servers from the LiteLLM
 * configuration.
 */
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { hashKey } from '../keys/api-keys.ts'
import { NewSource } from '../sources/source-input.ts'
import {
  type Found,
  type FoundKey,
  type FoundSource,
  found,
  type LeftOut,
  type TextFile,
  unknownFormat,
} from './found.ts'

/** Throws `invalid_import`. */
export const readYaml = ({ name, text }: TextFile): Found => {
  const yaml = parseYaml(text)
  if (!isObject(yaml)) throw unknownFormat(name, 'it is not valid YAML')
  if (Array.isArray(yaml.model_list)) return readLiteLlm(getObjects(yaml.model_list), name)
  const keys = getClientKeys(yaml)
  if (keys) return readClientKeys(keys, name)
  throw unknownFormat(name, 'it has neither api-keys nor a model_list')
}

const parseYaml = (text: string): unknown => {
  try {
    return Bun.YAML.parse(text)
  } catch {
    return undefined
  }
}

/** Reads the keys from either of the two places that versions of CLIProxyAPI use. */
const getClientKeys = (yaml: JsonObject): readonly unknown[] | null => {
  const nested = getObject(getObject(getObject(yaml.auth).providers)['config-api-key'])['api-keys']
  const keys = yaml['api-keys'] ?? nested
  if (Array.isArray(keys)) return keys
  return 'auth-dir' in yaml ? [] : null
}

const readClientKeys = (values: readonly unknown[], name: string): Found => {
  const keys: FoundKey[] = []
  const leftOut: LeftOut[] = []
  for (const [index, value] of values.entries()) {
    const label = `CLIProxyAPI key ${index + 1}`
    const key = getText(value).trim()
    if (/^[\x21-\x7e]{8,4096}$/.test(key)) keys.push(clientKey(key, label))
    else leftOut.push({ kind: 'key', label, reason: 'A key needs at least 8 printable characters.' })
  }
  return found('cliproxyapi', name, { keys, leftOut })
}

/** The longest prefix that is shown. Short keys show less: a third of their length. */
const SHOWN_LENGTH = 15

const clientKey = (key: string, label: string): FoundKey => ({
  label,
  hash: hashKey(key),
  prefix: key.slice(0, Math.min(SHOWN_LENGTH, Math.floor(key.length / 3))),
  input: { name: label },
  isActive: true,
  limits: [],
  foreignAccountIds: null,
  notes: key.length < 24 ? ['This key is short. Create a new one for clients outside your network.'] : [],
  problem: null,
})

/** LiteLLM providers that are OpenAI-compatible servers at `api_base`. */
const COMPATIBLE = ['openai', 'text-completion-openai', 'hosted_vllm', 'lm_studio', 'llamafile', 'custom_openai']

const OPENAI = 'https://api.openai.com/v1'
const FROM_ENVIRONMENT = 'os.environ/'

interface LiteLlmModel {
  baseUrl: string
  apiKey: string | null
  keyVariable: string | null
  /** The model name on the server. */
  model: string
  /** The model name that clients of LiteLLM use. */
  publicName: string
}

const readLiteLlm = (list: readonly JsonObject[], name: string): Found => {
  const leftOut: LeftOut[] = []
  const models = list.flatMap((entry) => {
    const read = readModel(entry)
    if ('model' in read) return [read]
    leftOut.push(read)
    return []
  })
  const servers = Map.groupBy(models, ({ baseUrl, apiKey, keyVariable }) => [baseUrl, apiKey, keyVariable].join('\n'))
  const names = new Set<string>()
  return found('litellm', name, { sources: [...servers.values()].map((group) => toSource(group, names)), leftOut })
}

const readModel = (entry: JsonObject): LiteLlmModel | LeftOut => {
  const params = getObject(entry.litellm_params)
  const full = getText(params.model)
  const publicName = getText(entry.model_name) || full
  const leftOut = (reason: string): LeftOut => ({ kind: 'source', label: publicName || 'A model', reason })
  const slash = full.indexOf('/')
  const provider = slash < 0 ? '' : full.slice(0, slash)
  const isCompatible = COMPATIBLE.includes(provider)
  const base = getText(params.api_base) || getText(params.base_url)
  if (full === '') return leftOut('It has no litellm_params.model.')
  if (!isCompatible && provider !== '')
    return leftOut(`Sluice supports only OpenAI-compatible servers, not ${provider}.`)
  if (base.startsWith(FROM_ENVIRONMENT)) return leftOut(`Its address is in ${base}, which Sluice does not read.`)
  if (base === '' && provider !== 'openai') return leftOut('It has no api_base.')
  const apiKey = getText(params.api_key) || (base === '' ? `${FROM_ENVIRONMENT}OPENAI_API_KEY` : '')
  const keyVariable = apiKey.startsWith(FROM_ENVIRONMENT) ? apiKey.slice(FROM_ENVIRONMENT.length) : null
  return {
    baseUrl: base || OPENAI,
    apiKey: keyVariable === null ? apiKey || null : null,
    keyVariable,
    model: isCompatible ? full.slice(slash + 1) : full,
    publicName,
  }
}

const toSource = (models: readonly LiteLlmModel[], names: Set<string>): FoundSource => {
  const { baseUrl, apiKey, keyVariable } = models[0]! // a group has at least one
  const host = URL.parse(baseUrl)?.host ?? baseUrl
  const name = freeName(host, names)
  const distinct = [...new Map(models.map((one) => [one.model, one])).values()]
  const renamed = distinct.filter(({ model, publicName }) => model !== publicName)
  return {
    keyVariable,
    input: NewSource.parse({
      name: name.slice(0, 128),
      baseUrl,
      apiKey,
      models: distinct.map(({ model }) => ({ model: model.slice(0, 255) })),
      isEnabled: keyVariable === null,
    }),
    notes: renamed.map(({ model, publicName }) => `Clients must request ${model} instead of ${publicName}.`),
  }
}

const freeName = (name: string, taken: Set<string>): string => {
  const free = taken.has(name) ? `${name} (${taken.size + 1})` : name
  taken.add(free)
  return free
}
