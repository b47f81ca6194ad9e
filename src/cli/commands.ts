/** Declares all commands: arguments, options, help and examples. Help, completion and parsing use this table. */
import { type CommandSpec, JSON_OPTION } from './command-spec.ts'
import { KEY_COMMANDS } from './commands-keys.ts'
import { MOVE_COMMANDS } from './commands-move.ts'

/** `sluice serve` itself is handled by `run.ts`. */
const helpOnly = async () => () => 0

const SERVER: readonly CommandSpec[] = [
  {
    usage: 'serve',
    summary: 'run the server',
    details: 'Set HOST, PORT and SLUICE_* variables in the environment, or in the file .env in the data folder.',
    options: [{ flags: '--processes <n>', text: 'how many processes serve requests, 1 to 64, on Linux (default: 1)' }],
    examples: ['sluice serve', 'HOST=0.0.0.0 PORT=8080 sluice serve', 'sluice serve --processes 4'],
    run: helpOnly,
  },
  {
    usage: 'reload',
    summary: 'replace the running server by the program on disk, without ending a request',
    details:
      'Use it after an update or after you changed the file .env. A new process takes new requests; the old one finishes its own. If the new process cannot start, the old one goes on and the exit code is 1.',
    examples: ['sluice reload', 'docker exec sluice sluice reload'],
    run: async () => (await import('./reload.ts')).reload,
  },
  {
    usage: 'status',
    summary: 'show the server, accounts, keys and the last hour on one screen',
    options: [JSON_OPTION],
    examples: ['sluice status', 'sluice status --json'],
    run: async () => (await import('./status.ts')).status,
  },
  {
    usage: 'logs',
    summary: 'show the newest requests',
    details: 'With -f, requests appear within a second after they end, until you press Ctrl-C.',
    options: [
      { flags: '-f, --follow', text: 'wait for new requests and show them' },
      { flags: '--errors', text: 'only requests that ended with an error' },
      { flags: '--limit <n>', text: 'how many requests to show first, 0 to 1000 (default: 20)' },
      { flags: '--json', text: 'print one JSON object per line' },
    ],
    examples: ['sluice logs -f', 'sluice logs --errors --limit 50'],
    run: async () => (await import('./logs.ts')).logs,
  },
  {
    usage: 'explain',
    summary: 'show which account a request would use, and why not the others',
    options: [
      { flags: '--model <model>', text: 'the model of the request (default: any)' },
      { flags: '--key <key>', text: 'the key of the request: its name or id (default: none)' },
      JSON_OPTION,
    ],
    examples: ['sluice explain --model gpt-5.5', 'sluice explain --model gpt-5.5 --key laptop'],
    run: async () => (await import('./explain.ts')).explainChoice,
  },
  {
    usage: 'replay',
    summary: 'replay the logged requests against every routing strategy',
    details: 'Takes seconds, or minutes for large pools. It changes nothing.',
    options: [
      { flags: '--days <days>', text: 'how many days of the log to replay, 1 to 90 (default: 28)' },
      {
        flags: '--seed <seed>',
        text: 'the seed of the random numbers; the same seed gives the same result (default: 1)',
      },
      JSON_OPTION,
    ],
    examples: ['sluice replay', 'sluice replay --days 14 --json'],
    run: async () => (await import('./replay.ts')).replay,
  },
  {
    usage: 'alerts',
    summary: 'show what needs attention now; also channels, test',
    options: [JSON_OPTION],
    examples: ['sluice alerts', 'sluice alerts --json'],
    run: async () => (await import('./alerts.ts')).listAlerts,
    commands: [
      {
        usage: 'channels',
        summary: 'list alert channels',
        options: [JSON_OPTION],
        examples: ['sluice alerts channels', 'sluice alerts channels --json'],
        run: async () => (await import('./alerts.ts')).listAllChannels,
      },
      {
        usage: 'test [channel]',
        summary: 'send a test to one alert channel, or to all',
        details: 'CHANNEL is a name or an id. Exits with 1 if a test could not be sent.',
        examples: ['sluice alerts test', 'sluice alerts test Phone'],
        run: async () => (await import('./alerts.ts')).testAlerts,
      },
    ],
  },
  {
    usage: 'doctor',
    summary: 'check the installation and say what to fix',
    details: 'Exits with 1 when there is a problem. It changes nothing.',
    options: [JSON_OPTION],
    examples: ['sluice doctor', 'sluice doctor --json'],
    run: async () => (await import('./doctor.ts')).doctor,
  },
  {
    usage: 'healthcheck',
    summary: 'exit with 0 if the server is ready, otherwise with 1',
    examples: ['sluice healthcheck', 'sluice healthcheck && echo ready'],
    run: async () => (await import('./healthcheck.ts')).healthcheck,
  },
]

const oneAccount = (name: string, summary: string): CommandSpec => ({
  usage: `${name} <account>`,
  summary,
  details: 'ACCOUNT is an e-mail, an alias, an id or the beginning of an id.',
  examples: [`sluice accounts ${name} ada@example.com`, `sluice accounts ${name} acc_3f9a`],
  run: async () => (await import('./accounts.ts'))[name as 'pause' | 'resume' | 'remove'], // as: the three names below
})

const ACCOUNTS: CommandSpec = {
  usage: 'accounts',
  summary: 'ChatGPT accounts: add, import, list, edit, pause, resume, remove',
  commands: [
    {
      usage: 'add',
      summary: 'sign in to ChatGPT with a code and add the account',
      details: 'Shows a page and a code. Open the page in any browser, sign in and enter the code.',
      examples: ['sluice accounts add', 'docker exec -it sluice sluice accounts add'],
      run: async () => (await import('./accounts-add.ts')).addAccount,
    },
    {
      usage: 'import <file...>',
      summary: 'import auth.json files of the Codex CLI, or ZIP archives of them',
      details:
        'Use - for standard input. If a file cannot be read, the others are still imported and the exit code is 1.',
      options: [JSON_OPTION],
      examples: [
        'sluice accounts import ~/.codex/auth.json',
        'ssh laptop cat .codex/auth.json | sluice accounts import -',
      ],
      run: async () => (await import('./accounts.ts')).importFiles,
    },
    {
      usage: 'list',
      summary: 'list accounts with their state and usage',
      options: [JSON_OPTION],
      examples: ['sluice accounts list', 'sluice accounts list --json'],
      run: async () => (await import('./accounts.ts')).listOfAccounts,
    },
    {
      usage: 'edit <account>',
      summary: 'change name, routing, tags, caps, owner, window start and reset rule of an account',
      details:
        'ACCOUNT is an e-mail, an alias, an id or the beginning of an id. `default` follows the settings. --tag replaces the previous tags.',
      options: [
        { flags: '--alias <name>', text: 'shown in place of the e-mail; empty: none' },
        { flags: '--policy <policy>', text: 'burn_first, normal or preserve' },
        { flags: '--tag <tag>', text: 'a tag (repeatable)', isList: true },
        { flags: '--remove-tags', text: 'remove all tags' },
        { flags: '--position <n>', text: 'place in the order of fill_first and sequential_drain, or none' },
        { flags: '--max-5h <percent>', text: 'cap on the use of the 5-hour window, or none' },
        { flags: '--max-week <percent>', text: 'cap on the use of the weekly or monthly window, or none' },
        { flags: '--owner <user>', text: 'the user whose account it is, or none' },
        { flags: '--reserve-for-owner <yes|no>', text: 'exempt keys of the owner from the caps' },
        { flags: '--window-start <state>', text: 'on or off: start its five-hour windows' },
        {
          flags: '--reset-policy <policy>',
          text: 'never, before_expiry, when_exhausted, at_percent or default: when to use reset credits',
        },
        { flags: '--keep-credits <n>', text: 'reset credits that the rule leaves, 0 to 9, or default' },
        { flags: '--min-blocked <minutes>', text: 'use none if the limits reset sooner on their own, or default' },
        { flags: '--percent <n>', text: 'how much of a window must be used, 50 to 100, or default' },
      ],
      examples: [
        'sluice accounts edit ada@example.com --reset-policy before_expiry --keep-credits 1',
        'sluice accounts edit acc_3f9a --window-start on',
        'sluice accounts edit ada@example.com --tag team-a --max-week 80 --owner ada --reserve-for-owner yes',
      ],
      run: async () => (await import('./accounts-edit.ts')).editOne,
    },
    oneAccount('pause', 'stop using an account'),
    oneAccount('resume', 'use a paused account again'),
    oneAccount('remove', 'delete an account; its requests stay in the log'),
  ],
}

const SETTINGS: CommandSpec = {
  usage: 'settings',
  summary: 'settings: get, set',
  commands: [
    {
      usage: 'get [name...]',
      summary: 'show all settings, or some',
      options: [JSON_OPTION],
      examples: ['sluice settings get', 'sluice settings get routingStrategy'],
      run: async () => (await import('./settings.ts')).getSettings,
    },
    {
      usage: 'set <name=value...>',
      summary: 'change settings; they apply to the next request',
      examples: [
        'sluice settings set apiKeyAuthEnabled=true',
        'sluice settings set requestLogRetentionDays=90 backupKeep=14',
      ],
      run: async () => (await import('./settings.ts')).setSettings,
    },
  ],
}

const oneUser = (
  name: string,
  summary: string,
  run: CommandSpec['run'],
  more: Partial<CommandSpec> = {},
): CommandSpec => ({
  usage: `${name} <user>`,
  summary,
  examples: [`sluice user ${name} anna`, `sluice user ${name} anna@example.com`],
  ...(run && { run }),
  ...more,
})

const PASSWORD = 'Enter the password when asked, or pipe it in.'

const USERS: CommandSpec = {
  usage: 'user',
  alias: 'users',
  summary: 'users of the dashboard: list, create-admin, reset-password, reset-totp, revoke-sessions',
  commands: [
    {
      usage: 'list',
      summary: 'list users',
      options: [JSON_OPTION],
      examples: ['sluice user list', 'sluice user list --json'],
      run: async () => (await import('./users.ts')).listAllUsers,
    },
    oneUser('create-admin', 'create an administrator', async () => (await import('./users.ts')).createAdminUser, {
      details: PASSWORD,
      examples: ['sluice user create-admin anna', 'sluice user create-admin admin < password.txt'],
    }),
    oneUser(
      'reset-password',
      'set a new password and sign the user out',
      async () => (await import('./users.ts')).resetPassword,
      {
        details: PASSWORD,
        examples: ['sluice user reset-password anna', 'sluice user reset-password admin < password.txt'],
      },
    ),
    oneUser(
      'reset-totp',
      'remove two-factor authentication and sign the user out',
      async () => (await import('./users.ts')).resetTotp,
    ),
    oneUser('revoke-sessions', 'sign the user out everywhere', async () => (await import('./users.ts')).revokeSessions),
  ],
}

const MAINTENANCE: readonly CommandSpec[] = [
  {
    usage: 'bootstrap-token',
    summary: 'the token that sets the first password from another machine',
    details: 'Without --rotate it only says whether there is one. Sluice stores only its hash.',
    options: [{ flags: '--rotate', text: 'create a new token and show it once' }],
    examples: ['sluice bootstrap-token', 'sluice bootstrap-token --rotate'],
    run: async () => (await import('./bootstrap.ts')).bootstrapToken,
  },
  {
    usage: 'audit',
    summary: 'the audit log: verify',
    commands: [
      {
        usage: 'verify',
        summary: 'check that the audit log is complete and unchanged',
        details: 'Exits with 1 and names the first entry that was changed or removed.',
        options: [JSON_OPTION],
        examples: ['sluice audit verify', 'sluice audit verify --json'],
        run: async () => (await import('./audit.ts')).verifyAudit,
      },
    ],
  },
  {
    usage: 'backup',
    summary: 'back up the database, also while the server runs; backup verify checks one',
    options: [
      { flags: '--out <file>', text: 'where to write it (default: backups/ in the data folder)' },
      { flags: '--with-key', text: 'copy the encryption key next to it' },
      JSON_OPTION,
    ],
    examples: ['sluice backup', 'sluice backup --out /mnt/nas/sluice.db --with-key'],
    run: async () => (await import('./backup.ts')).makeBackupFile,
    commands: [
      {
        usage: 'verify <file>',
        summary: 'check that a backup can be restored',
        options: [JSON_OPTION],
        examples: ['sluice backup verify /mnt/nas/sluice.db', 'sluice backup verify sluice.db --json'],
        run: async () => (await import('./backup.ts')).verifyBackupFile,
      },
    ],
  },
  {
    usage: 'restore <file>',
    summary: 'replace the database with a backup; stop the server first',
    details: 'The previous database is kept next to it.',
    options: [JSON_OPTION],
    examples: ['sluice restore /mnt/nas/sluice.db', 'sluice restore sluice.db --json'],
    run: async () => (await import('./restore.ts')).restore,
  },
  {
    usage: 'database',
    summary: 'move the database to PostgreSQL or back: copy',
    commands: [
      {
        usage: 'copy',
        summary: 'copy all data between a data folder and PostgreSQL; stop the server first',
        details:
          'FROM and TO are a data folder or database file, and postgres://USER:PASSWORD@HOST/DATABASE. The target must be new or empty. If the copy fails, it is left empty.',
        options: [
          { flags: '--from <place>', text: 'what to copy' },
          { flags: '--to <place>', text: 'where to copy it' },
          JSON_OPTION,
        ],
        examples: [
          'sluice database copy --from /srv/data --to postgres://sluice@db.example.com/sluice',
          'sluice database copy --to /srv/data --from postgres://sluice@db.example.com/sluice',
        ],
        run: async () => (await import('./database.ts')).copy,
      },
    ],
  },
  {
    usage: 'service',
    summary: 'service files for systemd and launchd: print',
    commands: [
      {
        usage: 'print',
        summary: 'print a systemd unit for this program and its current environment',
        options: [{ flags: '--launchd', text: 'print a property list for launchd (macOS) instead' }],
        examples: [
          'sluice service print > /etc/systemd/system/sluice.service',
          'sluice service print --launchd > ~/Library/LaunchAgents/sluice.plist',
        ],
        run: async () => (await import('./service.ts')).printService,
      },
    ],
  },
  {
    usage: 'completion <shell>',
    summary: 'print a completion script for bash, zsh or fish',
    examples: ['source <(sluice completion bash)', 'sluice completion fish > ~/.config/fish/completions/sluice.fish'],
    run: async () => (await import('./completion.ts')).getCompletion(Object.values(COMMANDS).flat()),
  },
  {
    usage: 'version',
    summary: 'print the version',
    examples: ['sluice version', 'sluice --version'],
    run: async () => (await import('./print-version.ts')).printVersion,
  },
]

/** By the help's headings. */
export const COMMANDS: Readonly<Record<string, readonly CommandSpec[]>> = {
  'Server:': SERVER,
  'Accounts and clients:': [ACCOUNTS, KEY_COMMANDS, SETTINGS, ...MOVE_COMMANDS],
  'Users:': [USERS],
  'Maintenance:': MAINTENANCE,
}
