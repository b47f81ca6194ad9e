/** The help behind the `?` beside card titles: two sentences, and the part of the guides that says more. */

import { STATEMENT_HELP } from './accounts/statement-help.ts'
import { ALERT_HELP } from './alerts/help.ts'
import { REPORT_HELP } from './reports/help.ts'
import { ROUTING_HELP } from './settings/routing-help.ts'

export interface Help {
  says: string
  /** Path below `/docs`. */
  more: string
}

const USERS = 'operating#users'
const SETTINGS = 'operating#settings'

/** Card id → help. Cards with the same id are about the same topic. */
export const HELP: Readonly<Partial<Record<string, Help>>> = {
  // Overview
  checklist: {
    says: 'These steps lead from an empty install to the first answered request. The list disappears when all are done.',
    more: 'clients',
  },
  steps: {
    says: 'These commands do the same as the dashboard. Run them on the machine that runs Sluice.',
    more: 'operating#commands',
  },
  requests: {
    says: 'Each bar counts the requests of one step, by result. Select a bar to see its requests in the log.',
    more: 'operating#monitor',
  },
  'own-keys': {
    says: 'The keys that belong to you, with their fullest limits. Select one for its settings and usage.',
    more: 'clients',
  },
  'pool-left': {
    says: 'How much quota all accounts together have left, which every key shares. Each window resets at the time shown.',
    more: 'operating#monitor',
  },
  strips: {
    says: 'Each cell shows how the requests of one account went in that time. Empty cells had no requests.',
    more: 'operating#fix-problems',
  },
  'last-errors': {
    says: 'The newest errors of the period, grouped by cause. Open one to see every attempt and what ChatGPT answered.',
    more: 'operating#fix-problems',
  },
  ...ALERT_HELP,
  // Automations
  automations: {
    says: 'An automation sends one small request on each of its accounts at a set time. The requests count in no total and no limit.',
    more: SETTINGS,
  },
  automation: {
    says: 'Times are local times of the zone, also where clocks change. A time that was missed by more than an hour, because Sluice was not running, is skipped.',
    more: SETTINGS,
  },
  'ready-made': {
    says: 'Each opens the form with suitable values. You can change them before you create the automation.',
    more: SETTINGS,
  },
  'automation-runs': {
    says: 'A run has one line per account. Accounts that cannot serve requests are skipped, and no other account takes their place.',
    more: SETTINGS,
  },
  'run-accounts': {
    says: 'Each account gets one small request, and no other account takes its place. The list updates while the run goes on.',
    more: SETTINGS,
  },
  // Captures
  'past-captures': {
    says: 'Ended captures can be read until they are deleted. Each reading is written to the audit log.',
    more: 'security#what-is-stored',
  },
  captured: {
    says: 'The requests that this capture stored, newest first. Each reading is written to the audit log.',
    more: 'security#what-is-stored',
  },
  ...REPORT_HELP,
  // Accounts
  plans: {
    says: 'Requests and cost of the accounts of each plan, and how many are available. ChatGPT reports the plan.',
    more: 'operating#monitor',
  },
  windows: {
    says: 'ChatGPT limits each account by time windows. The bar shows how much is used, and the time says when the window resets.',
    more: 'operating#fix-problems',
  },
  trend: {
    says: 'The share of each window that was used, hour by hour. A gap is an hour without data.',
    more: 'operating#monitor',
  },
  spend: {
    says: 'The requests of this account in the last 7 days, by key and model. Cost is what they would cost at API prices.',
    more: 'operating#monitor',
  },
  ...STATEMENT_HELP,
  window: {
    says: 'A five-hour window begins with its first request. Sluice can send a tiny one after each reset or at set hours, so that the next window begins sooner.',
    more: SETTINGS,
  },
  'reset-credits': {
    says: 'A reset credit sets the used quota of this account back to zero immediately. ChatGPT grants them, and each works once.',
    more: 'operating#fix-problems',
  },
  routing: {
    says: 'The policy decides when this account is used: normally, first, or only as a last resort. It applies to the next request.',
    more: SETTINGS,
  },
  circumstances: {
    says: 'The strategy and limits for all accounts also decide which one is used. The routing simulator shows the result.',
    more: SETTINGS,
  },
  events: {
    says: 'What happened to this account and why, newest first. It also shows why the account recovered.',
    more: 'operating#fix-problems',
  },
  tokens: {
    says: 'Sluice refreshes the tokens of this account automatically. If ChatGPT rejects them, sign in again.',
    more: 'security#what-is-stored',
  },
  export: {
    says: 'An exported file holds working credentials of this account. Anyone who has it can use the account.',
    more: 'security#what-is-not-protected',
  },
  // Keys
  usage: {
    says: 'The requests with this key in the last 7 days. Cost is what they would cost at API prices.',
    more: 'operating#monitor',
  },
  limits: {
    says: 'A limit caps requests, tokens or cost in a time window. Requests over a limit get HTTP 429.',
    more: 'operating#fix-problems',
  },
  policy: {
    says: 'What this key may use: models, reasoning efforts, service tiers and accounts. Other requests are rejected.',
    more: 'clients',
  },
  test: {
    says: 'The test sends one small request with this key, as your clients do. Your browser also checks what a reverse proxy blocks.',
    more: 'clients#test-a-key',
  },
  connect: {
    says: 'Copy the configuration for your client. It contains the address of Sluice and the key.',
    more: 'clients',
  },
  // Logs and reports
  log: {
    says: 'One row per request, newest first. Open a row to see its timing, cost, attempts, and why each account was used or skipped.',
    more: 'operating#fix-problems',
  },
  captures: {
    says: 'A capture stores all requests and answers of one key or account, so that you can see what a client really sent. It stops at its time or size, and is deleted a week later.',
    more: 'security#what-is-stored',
  },
  conversations: {
    says: 'Requests that a client sent as one conversation, such as a Codex session. Open one to see each request and what it used.',
    more: 'operating#monitor',
  },
  conversation: {
    says: 'What this conversation used in all its logged requests. Each move to another account sends its input uncached once.',
    more: 'operating#monitor',
  },
  turns: {
    says: 'One row per request of this conversation, newest first. Open a row to see its attempts.',
    more: 'operating#fix-problems',
  },
  'conversation-models': {
    says: 'The requests of this conversation, by model and reasoning effort. Cost is what they would cost at API prices.',
    more: 'operating#monitor',
  },
  chart: {
    says: 'Each bar is one day or hour in your time zone. The line is the period before.',
    more: 'operating#monitor',
  },
  models: {
    says: 'The same range, by model. Select a row to narrow the report to it.',
    more: 'operating#monitor',
  },
  keys: {
    says: 'The same range, by API key. Select a row to narrow the report to it.',
    more: 'operating#monitor',
  },
  accounts: {
    says: 'The same range, by ChatGPT account. Select a row to narrow the report to it.',
    more: 'operating#monitor',
  },
  clients: {
    says: 'The same range, by client program. Select a row to narrow the report to it.',
    more: 'operating#monitor',
  },
  'by-source': {
    says: 'The same range, by what served it: your ChatGPT accounts, or a model source. Select a row to narrow the report to it.',
    more: 'operating#monitor',
  },
  // Settings
  access: {
    says: 'How you sign in, and what clients need. With API keys required, requests without a valid key are rejected.',
    more: 'security#signing-in',
  },
  'access-people': {
    says: 'Users sign in to this dashboard; they are not ChatGPT accounts. Their role decides what they can see and change.',
    more: USERS,
  },
  'settings-security': {
    says: 'How users sign in, and for how long. Changes apply to the next sign-in.',
    more: 'security#signing-in',
  },
  'settings-guests': {
    says: 'Guests see the dashboard without signing in and cannot change anything. A guest password limits this to those who know it.',
    more: 'security#what-each-role-sees',
  },
  'settings-members': {
    says: 'What users with the role Member can create for themselves. Operators can give any key to a Member.',
    more: USERS,
  },
  'settings-clients': {
    says: 'What clients need to connect, and what Sluice shows them. Changes apply to the next request.',
    more: 'security#who-can-reach-what',
  },
  'delete-sessions': {
    says: 'A conversation without a session can use any account with its next request. Its cached input is then sent in full once.',
    more: SETTINGS,
  },
  'sticky-sessions': {
    says: 'A conversation stays on one account, so that its cached input is used again. Sluice stores only a hash of its name.',
    more: SETTINGS,
  },
  ...ROUTING_HELP,
  sources: {
    says: 'Servers that Sluice uses for models no account has, or that a key is limited to. A test shows which of their APIs work, and how fast.',
    more: SETTINGS,
  },
  'source-health': {
    says: 'Whether the last test or request worked. A test lists the models and sends one small request to each API that you selected, which can cost a little.',
    more: SETTINGS,
  },
  'source-models': {
    says: 'Clients can use these models by name. Prices are in dollars and count towards limits and reports.',
    more: SETTINGS,
  },
  'source-edit': {
    says: 'How Sluice reaches the server. You confirm changes of the base URL and the API key with your password.',
    more: SETTINGS,
  },
  'source-facts': {
    says: 'How Sluice uses the server. Only users who manage sources see its address.',
    more: SETTINGS,
  },
  'source-delete': {
    says: 'Deletes the source with its models and its API key. Keys that are limited to it can use no source afterwards.',
    more: SETTINGS,
  },
  discovered: {
    says: 'What the server lists itself, with what it says about prices and context. Nothing is stored until you add models.',
    more: SETTINGS,
  },
  'settings-overflow': {
    says: 'A model source that serves requests while every account is at its limit. Nothing overflows until you choose a source.',
    more: SETTINGS,
  },
  'settings-limits': {
    says: 'Limits protect each account and this machine. Requests over them wait, and are rejected if that takes too long.',
    more: SETTINGS,
  },
  'settings-timeouts': {
    says: 'How long each part of a request may take. After that, Sluice tries another account or ends the request with an error.',
    more: SETTINGS,
  },
  'settings-egress': {
    says: 'Each account can reach ChatGPT through proxies of its own. If none of them connects, the account is skipped; Sluice never connects it directly.',
    more: SETTINGS,
  },
  'settings-retention': {
    says: 'How long the request log and the audit log are kept. Hourly totals stay, so reports remain complete.',
    more: 'operating#the-data-folder',
  },
  'settings-backups': {
    says: 'Sluice copies its database on a schedule and checks each copy. Keep encryption.key elsewhere, because no backup works without it.',
    more: 'operating#back-up-and-restore',
  },
  size: {
    says: 'How much disk space the database takes, and for what. Space of deleted rows is reused before the file grows.',
    more: 'operating#the-data-folder',
  },
  'backup-list': {
    says: 'The backups in the data folder, newest first. Old scheduled backups are deleted, and manual ones are kept.',
    more: 'operating#back-up-and-restore',
  },
  proxies: {
    says: 'Forwarded headers are trusted only from these addresses. They tell Sluice the address of the client and the host in the browser.',
    more: 'reverse-proxies#set-up-sluice',
  },
  firewall: {
    says: 'With entries, only clients at these addresses can send model requests. The dashboard is not affected.',
    more: 'security#who-can-reach-what',
  },
  'egress-endpoints': {
    says: 'HTTP and SOCKS proxies that accounts can use. A test loads a page of ChatGPT through the proxy and shows the address ChatGPT sees.',
    more: SETTINGS,
  },
  'egress-pools': {
    says: 'Accounts are assigned to a pool. Its proxies are used in order, and the next one only when a proxy does not connect.',
    more: SETTINGS,
  },
  egress: {
    says: 'How this account reaches ChatGPT. With a pool, all of its calls use the proxies of the pool, and none goes another way.',
    more: SETTINGS,
  },
  'egress-environment': {
    says: 'The proxy that Sluice uses to reach ChatGPT for accounts without a pool. Set it with environment variables and restart Sluice.',
    more: 'operating#configure',
  },
  build: {
    says: 'The version of Sluice and what it runs on. Include it when you report a problem.',
    more: 'operating#upgrade',
  },
  environment: {
    says: 'The environment variables Sluice was started with; secrets are hidden. Change them where you start Sluice, then restart it.',
    more: 'operating#configure',
  },
  licences: {
    says: 'The open-source software that Sluice contains, with its licenses. Nothing here needs your attention.',
    more: 'security#report-a-vulnerability',
  },
  // Users
  people: {
    says: 'Users sign in to this dashboard; they are not ChatGPT accounts. Invite them by link and choose their role.',
    more: USERS,
  },
  roles: {
    says: 'A role is a set of permissions. You can create your own with permissions that you have yourself.',
    more: 'security#what-each-role-sees',
  },
  providers: {
    says: 'A reverse proxy can sign users in and send their name to Sluice. Choose the role that new users get.',
    more: 'reverse-proxies#a-proxy-that-signs-people-in',
  },
  // My account
  profile: {
    says: 'Your name as other users see it. The user name you sign in with stays the same.',
    more: USERS,
  },
  share: { says: 'Yours, for all your keys. Beyond it you borrow from idle users.', more: USERS },
  clock: {
    says: 'Times follow the clock of this browser unless you choose another one here. Exports and the API are not affected.',
    more: 'operating#monitor',
  },
  password: {
    says: 'Changing your password signs you out everywhere else. Several random words are easy to remember and hard to guess.',
    more: 'security#signing-in',
  },
  'two-factor': {
    says: 'After the password, you enter a code from your phone. Recovery codes work without the phone.',
    more: USERS,
  },
  passkeys: {
    says: 'A passkey signs you in with your device instead of a password. It works only at the address where you created it.',
    more: USERS,
  },
  sessions: {
    says: 'The browsers you are signed in with. End any that you do not recognize, then change your password.',
    more: 'security#signing-in',
  },
  // Health check
  server: {
    says: 'What Sluice checked on its own machine and towards ChatGPT. The command sluice doctor also checks the whole database file.',
    more: 'operating#fix-problems',
  },
  browser: {
    says: 'What your browser checked on the way to Sluice. A reverse proxy in between can buffer or block parts of it.',
    more: 'reverse-proxies#check-that-it-works',
  },
}
