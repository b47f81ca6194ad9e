/** Declares `sluice keys …`. */
import { type CommandSpec, JSON_OPTION, type OptionSpec } from './command-spec.ts'

const POLICY: readonly OptionSpec[] = [
  { flags: '--model <model>', text: 'allow only this model (repeatable)', isList: true },
  {
    flags: '--limit <limit>',
    text: 'TYPE:WINDOW:MAX[:MODEL], such as requests:5h:100, total_tokens:daily:5M, cost_usd:monthly:20 (repeatable)',
    isList: true,
  },
  { flags: '--account-tag <tag>', text: 'allow only accounts with this tag (repeatable)', isList: true },
  { flags: '--prohibit-fast-mode <rule>', text: 'off, strip, refuse, or default for the setting' },
  {
    flags: '--claude-model <choice>',
    text: 'SIZE=MODEL[:EFFORT], such as opus=gpt-5.5:high (repeatable, replaces all), or default for the setting',
    isList: true,
  },
  { flags: '--expires <time>', text: '2027-01-31, 2027-01-31T18:00:00Z or never' },
  { flags: '--traffic <class>', text: 'foreground, or opportunistic: only quota that other keys leave over' },
]

const WHICH = 'KEY is a name, an id, the beginning of an id, or the shown beginning of the key.'

export const KEY_COMMANDS: CommandSpec = {
  usage: 'keys',
  summary: 'API keys of clients: create, list, test, edit, regenerate, revoke, delete',
  commands: [
    {
      usage: 'create',
      summary: 'create a key and show it once',
      details: 'The key is printed alone on standard output.',
      options: [{ flags: '--name <name>', text: 'name of the key (required)' }, ...POLICY, JSON_OPTION],
      examples: [
        'sluice keys create --name laptop',
        'sluice keys create --name ci --model gpt-5.5 --limit cost_usd:monthly:20 --expires 2027-01-31',
      ],
      run: async () => (await import('./keys.ts')).create,
    },
    {
      usage: 'list',
      summary: 'list keys with their state and limits',
      options: [JSON_OPTION],
      examples: ['sluice keys list', 'sluice keys list --json'],
      run: async () => (await import('./keys.ts')).list,
    },
    {
      usage: 'test [key]',
      summary: 'send a small request with a key to the running server',
      details:
        'Sluice stores only a hash of each key. Paste the key when asked, or pipe it in. ' +
        'If you name a KEY, the command checks that both are the same.',
      options: [
        { flags: '--model <model>', text: 'the model to use (default: the first one the key may use)' },
        JSON_OPTION,
      ],
      examples: ['sluice keys test laptop', 'echo "$SLUICE_API_KEY" | sluice keys test --model gpt-5.5'],
      run: async () => (await import('./key-test.ts')).testKey,
    },
    {
      usage: 'edit <key>',
      summary: 'change what a key may do',
      details: `${WHICH} --model, --limit, --account-tag and --claude-model replace the previous values.`,
      options: [
        { flags: '--name <name>', text: 'a new name' },
        ...POLICY,
        { flags: '--all-models', text: 'allow every model' },
        { flags: '--all-accounts', text: 'allow every account' },
        { flags: '--unlimited', text: 'remove all limits' },
        { flags: '--enable', text: 'enable a revoked key' },
        { flags: '--reset-usage', text: 'set the usage of every limit back to zero' },
        JSON_OPTION,
      ],
      examples: [
        'sluice keys edit laptop --limit requests:5h:200 --reset-usage',
        'sluice keys edit ci --all-models --expires never',
      ],
      run: async () => (await import('./keys.ts')).edit,
    },
    {
      usage: 'regenerate <key>',
      summary: 'create a new secret for a key; the old one stops working immediately',
      details: WHICH,
      options: [JSON_OPTION],
      examples: ['sluice keys regenerate laptop', 'sluice keys regenerate ci --json'],
      run: async () => (await import('./keys.ts')).regenerate,
    },
    {
      usage: 'revoke <key>',
      summary: 'disable a key; keys edit --enable undoes it',
      details: WHICH,
      examples: ['sluice keys revoke laptop', 'sluice keys revoke sk-clb-AbCdEfGh'],
      run: async () => (await import('./keys.ts')).revoke,
    },
    {
      usage: 'delete <key>',
      summary: 'delete a key; its requests stay in the log',
      details: WHICH,
      examples: ['sluice keys delete laptop', 'sluice keys delete key_3f9a'],
      run: async () => (await import('./keys.ts')).remove,
    },
  ],
}
