/** The formats and kinds of items that can be imported, with their names. */

export const FORMATS = [
  'codex-lb',
  'codex',
  'cliproxyapi',
  'sub2api',
  'opencode',
  'icebear',
  'cockpit',
  'codex-manager',
  'sluice',
  'litellm',
] as const
export type Format = (typeof FORMATS)[number]

export const FORMAT_NAMES: Readonly<Record<Format, string>> = {
  'codex-lb': 'codex-lb',
  codex: 'Codex CLI',
  cliproxyapi: 'CLIProxyAPI',
  sub2api: 'sub2api',
  opencode: 'OpenCode',
  icebear: 'codex-proxy (icebear)',
  cockpit: 'Cockpit Tools',
  'codex-manager': 'Codex-Manager',
  sluice: 'Sluice',
  litellm: 'LiteLLM',
}

export const ITEM_KINDS = ['account', 'key', 'source', 'proxy', 'setting', 'firewall', 'history'] as const
export type ItemKind = (typeof ITEM_KINDS)[number]

const NAMES_OF_KINDS: Readonly<Record<ItemKind, readonly [one: string, many: string]>> = {
  account: ['account', 'accounts'],
  key: ['API key', 'API keys'],
  source: ['model source', 'model sources'],
  proxy: ['outbound proxy', 'outbound proxies'],
  setting: ['setting', 'settings'],
  firewall: ['firewall address', 'firewall addresses'],
  history: ['request log', 'request logs'],
}

/** A count with its noun, such as “3 API keys”. */
export const countKind = (count: number, kind: ItemKind): string =>
  `${count} ${NAMES_OF_KINDS[kind][count === 1 ? 0 : 1]}`
