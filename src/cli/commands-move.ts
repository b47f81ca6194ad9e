/** Declares the commands that move data here from other tools, and accounts to another Sluice. */
import { FORMATS } from '../model/imports/words.ts'
import { type CommandSpec, JSON_OPTION } from './command-spec.ts'

const PASSPHRASE = { flags: '--passphrase-file <file>', text: 'the file with the passphrase of a Sluice export' }

const IMPORT: CommandSpec = {
  usage: 'import <path>',
  summary: 'move here from codex-lb, CLIProxyAPI, sub2api and others; shows a plan first',
  details: `PATH is a folder or a file: the data folder of codex-lb, the auth folder of CLIProxyAPI, or an export. Without --apply nothing is written. Formats: ${FORMATS.join(', ')}.`,
  options: [
    { flags: '--from <format>', text: 'the format to expect (default: auto)' },
    { flags: '--apply', text: 'import new accounts and keys, and newer tokens' },
    { flags: '--pause', text: 'pause the imported accounts' },
    { flags: '--replace', text: 'also replace stored tokens that are as new or newer' },
    { flags: '--settings', text: 'also import settings' },
    { flags: '--firewall', text: 'also import the firewall list' },
    { flags: '--proxies', text: 'also import outbound proxies' },
    { flags: '--history', text: 'also import the request log' },
    { flags: '--key <file>', text: 'the encryption.key of codex-lb, if it is in another folder' },
    PASSPHRASE,
    JSON_OPTION,
  ],
  examples: [
    'sluice import ~/.codex-lb',
    'sluice import ~/.codex-lb --apply',
    'sluice import ~/.cli-proxy-api --apply --pause',
    'sluice import accounts.sluice.json --passphrase-file passphrase.txt --apply',
  ],
  run: async () => (await import('./import.ts')).importFrom,
}

const EXPORT: CommandSpec = {
  usage: 'export',
  summary: 'export accounts to another Sluice',
  commands: [
    {
      usage: 'accounts',
      summary: 'write all accounts with their tokens to an encrypted file',
      details: 'Stop using the accounts here before you use them there: refresh tokens rotate.',
      options: [
        { flags: '--out <file>', text: 'the file to write; it must not exist' },
        { flags: '--passphrase-file <file>', text: 'the file with the passphrase, at least 12 characters' },
      ],
      examples: [
        'sluice export accounts --out accounts.sluice.json --passphrase-file passphrase.txt',
        'sluice export accounts --out /mnt/usb/accounts.json --passphrase-file ~/passphrase.txt',
      ],
      run: async () => (await import('./export-accounts.ts')).exportAccounts,
    },
  ],
}

export const MOVE_COMMANDS: readonly CommandSpec[] = [IMPORT, EXPORT]
