/** The help beside the cards of Settings, Routing. */

const SETTINGS = 'operating#settings'

export const ROUTING_HELP = {
  'settings-routing': {
    says: 'The strategy chooses the account for each request. Try it in the routing simulator.',
    more: SETTINGS,
  },
  'settings-affinity': {
    says: 'A conversation stays on the account that started it, because ChatGPT caches it there. This sets for how long.',
    more: SETTINGS,
  },
  'settings-claude': {
    says: 'Automatic means by list price: the most expensive model for Opus, the middle one for Sonnet, the cheapest for Haiku. Other names, like claude-gpt-5.5, stay as they are.',
    more: 'claude-code',
  },
  'settings-windows': {
    says: 'When Sluice begins the five-hour windows of accounts that have it turned on. Each start is one tiny request that counts in no total.',
    more: SETTINGS,
  },
  'settings-resets': {
    says: 'When Sluice uses reset credits without being asked. The page of an account shows what its rule would do next.',
    more: SETTINGS,
  },
} as const
