/** Who may use a route, as text. Code is between backticks. */
import type { AccessRule } from '../http/gates.ts'
import type { Operation } from './operations.ts'

/** For a page: a sentence. */
export const accessSentence = ({ access, words }: Pick<Operation, 'access' | 'words'>): string => {
  switch (access.access) {
    case 'permission':
      return `Users with ${getPermissions(access)}${conditions(access)}${access.own ? OWN : ''}.`
    case 'writes':
      return `Users with \`accounts:write\`, \`api_keys:write\` and \`ops:write\`${sometimes(access)}${access.ownKeys ? OWN_KEYS : ''}.`
    case 'signed-in':
      return `${access.account ? 'Every user' : 'Every user and guest'}${conditions({ stepUp: access.stepUp === true })}.`
    case 'client-key':
      return CLIENTS[access.key].whole
    case 'open':
      return words.account ? `The signed-in user${words.account === 'held' ? HELD : ''}.` : OPEN
  }
}

const CLIENTS = {
  always: { whole: 'Clients with a key.', short: 'key' },
  optional: { whole: 'Clients, with a key where keys are required.', short: 'key, if required' },
  owner: { whole: 'Owners of an account, with its ChatGPT token.', short: 'ChatGPT token' },
  'key-or-owner': {
    whole: 'Clients with a key, and owners of an account with its ChatGPT token.',
    short: 'key or ChatGPT token',
  },
} as const

const OWN = '; with the scope `own`, only their own keys and requests'
const OWN_KEYS = ', and users with `api_keys:write:own` for their own keys'
const OPEN = 'Everyone. The route does its own checks.'
const HELD = ', also before required two-factor authentication is set up'

/** For a table. */
export const accessLabel = ({ access, words }: Pick<Operation, 'access' | 'words'>): string => {
  switch (access.access) {
    case 'permission':
      return [
        getPermissions(access),
        ...(access.own ? ['(own)'] : []),
        ...(access.stepUp ? ['+SU'] : []),
        ...(access.account ? ['*acct*'] : []),
      ].join(' ')
    case 'writes':
      if (access.ownKeys) return 'write check, or `api_keys:write:own`'
      return access.sometimes ? `write check, or \`${access.sometimes.permission}\` +SU` : 'write check'
    case 'signed-in':
      return [access.account ? '*acct*' : 'signed in', ...(access.stepUp ? ['+SU'] : [])].join(' ')
    case 'client-key':
      return CLIENTS[access.key].short
    case 'open':
      return words.account ? '*acct*' : 'open'
  }
}

type Permitted = Extract<AccessRule, { access: 'permission' }>

const getPermissions = ({ permission, or, and }: Permitted): string =>
  `\`${permission}\`${or ? ` or \`${or}\`` : ''}${and ? ` and \`${and}\`` : ''}`

const conditions = ({ stepUp, account }: { stepUp: boolean; account?: boolean }): string =>
  [account ? ', not guests' : '', stepUp ? ', confirmed within five minutes' : ''].join('')

const sometimes = ({ sometimes: rule }: Extract<AccessRule, { access: 'writes' }>): string =>
  rule ? `; where ${rule.when}, users with \`${rule.permission}\`, confirmed within five minutes` : ''
