/** What `sluice help` prints. */

export const HELP = `Sluice: one gate in front of a pool of model accounts.

Usage: sluice COMMAND

  serve                        run the server
  accounts import FILE...      take in auth.json files of the native client, or a ZIP of them; - is standard input
  accounts list                accounts with their state and usage
  accounts pause ACCOUNT       take an account out of use
  accounts resume ACCOUNT      put it back
  accounts remove ACCOUNT      forget it; its log rows stay
  keys create --name NAME      make an API key and show it once
      --model MODEL            allow only these models (repeatable)
      --limit TYPE:WINDOW:MAX[:MODEL]
                               such as requests:5h:100, total_tokens:daily:5M, cost_usd:monthly:20 (repeatable)
      --expires TIME           2027-01-31 or 2027-01-31T18:00:00Z
  keys list                    keys with their limits
  keys revoke KEY              switch a key off
  settings get [NAME...]       settings in force
  settings set NAME=VALUE...   change settings, effective for the next turn
  user list                    dashboard accounts
  user create-admin NAME       make an administrator; the password is read from the terminal or standard input
  user reset-password NAME     set a new password, read likewise, and sign the person out everywhere
  user reset-totp NAME         take the second factor away, and sign the person out everywhere
  user revoke-sessions NAME    sign the person out everywhere
  bootstrap-token [--rotate]   whether there is one; --rotate makes a new one and shows it once
  audit verify                 prove that the audit log is whole, or name its first broken row
  backup [--out FILE]          copy the database, also while the server runs; --with-key takes the key along
  backup verify FILE           prove that a backup can be restored
  restore FILE                 put a backup in its place; stop the server first
  doctor                       look for what is wrong, and say what to do
  service print [--launchd]    a systemd unit (or launchd property list) for this program as it is set up now
  healthcheck                  exit code 0 when the server here is ready
  version                      print the version

ACCOUNT, KEY and NAME are an id, the beginning of one, an e-mail or a name. import, keys create, list, get, verify,
backup, restore and doctor take --json.
Commands work on the data folder (CODEX_LB_DATA_DIR, ~/.sluice when unset), also beside a running server.
`
