/** `sluice service print`: a unit for systemd, or a property list for launchd, that runs this program as it is set up now. */
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { ownCommand } from '../ops/own-command.ts'
import { type CliIo, type Command, configOf, dispatch, noArguments, readArgs } from './command.ts'

const print: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { launchd: { type: 'boolean' } })
  noArguments(positionals)
  const service = serviceOf(io)
  io.stdout(values.launchd ? launchdPlist(service) : systemdUnit(service))
  return 0
}

export const service: Command = dispatch('service', { print })

export interface Service {
  /** The program and its arguments. */
  command: readonly string[]
  dataDir: string
  /** Set for it; secrets belong into the `.env` of the data folder instead. */
  environment: Readonly<Record<string, string>>
  /** Seconds it may take to finish running turns. */
  drainSeconds: number
  /** Whose home the folder or the program lies in; null: in none, so that the service can be a user of its own. */
  homeOf: string | null
}

const serviceOf = (io: CliIo): Service => {
  const config = configOf(io)
  const dataDir = resolve(config.DATA_DIR)
  const command = [...ownCommand().map((part) => resolve(part)), 'serve']
  return {
    command,
    dataDir,
    homeOf: [...command, dataDir].some(isInHome) ? userInfo().username : null,
    environment: { CODEX_LB_DATA_DIR: dataDir, HOST: config.HOST, PORT: String(config.PORT) },
    drainSeconds: config.SHUTDOWN_DRAIN_SECONDS,
  }
}

const isInHome = (path: string): boolean => /^\/(home|root|Users)\//.test(path)

/** More than the drain itself: the last records are written after it. */
const GRACE_SECONDS = 15

/** What the service does not need is taken from it (systemd.exec(5)); `systemd-analyze security` calls it well protected. */
export const systemdUnit = ({ command, dataDir, environment, drainSeconds, homeOf }: Service): string =>
  `# Save as /etc/systemd/system/sluice.service, then:
#   systemctl daemon-reload && systemctl enable --now sluice
${homeOf === null ? ownUser(dataDir) : ''}[Unit]
Description=Sluice, one gate in front of a pool of model accounts
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=${command.map((part) => systemdWord(part.replaceAll('$', '$$$$'))).join(' ')}
${Object.entries(environment)
  .map(([name, value]) => `Environment=${systemdWord(`${name}=${value}`)}`)
  .join('\n')}
User=${homeOf ?? 'sluice'}
Restart=on-failure
RestartSec=2
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=${Math.ceil(drainSeconds) + GRACE_SECONDS}
LimitNOFILE=65536
UMask=0077
ReadWritePaths=${systemdWord(dataDir)}
NoNewPrivileges=true
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=${homeOf === null}
ProtectProc=invisible
ProtectClock=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectKernelTunables=true
ProtectControlGroups=true
PrivateTmp=true
PrivateDevices=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
RemoveIPC=true
SystemCallArchitectures=native
SystemCallFilter=@system-service
# The just-in-time compiler of the runtime writes code: MemoryDenyWriteExecute must stay off.

[Install]
WantedBy=multi-user.target
`

const ownUser = (dataDir: string): string => `# It runs as a user of its own; make one, and give it the folder:
#   useradd --system --home-dir ${dataDir} --shell /usr/sbin/nologin sluice
#   install -d -o sluice -m 0700 ${dataDir}
`

/** Quoted where the syntax needs it; a `%` begins a specifier (systemd.syntax(7), systemd.unit(5)). */
const systemdWord = (word: string): string => {
  const plain = word.replaceAll('%', '%%')
  return /^[\w./:=@%$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

export const launchdPlist = ({ command, environment, drainSeconds }: Service): string =>
  `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Save as ~/Library/LaunchAgents/sluice.plist, then: launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/sluice.plist -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>sluice</string>
  <key>ProgramArguments</key>
  <array>
${command.map((part) => `    <string>${xml(part)}</string>`).join('\n')}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${Object.entries(environment)
  .map(([name, value]) => `    <key>${name}</key>\n    <string>${xml(value)}</string>`)
  .join('\n')}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>${Math.ceil(drainSeconds) + GRACE_SECONDS}</integer>
  <key>Umask</key>
  <integer>63</integer>
</dict>
</plist>
`

const xml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
