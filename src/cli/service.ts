/** `sluice service print`: a systemd unit or launchd property list that runs this program with its current setup. */
import { resolve } from 'node:path'
import { variablesSet, withEnvFile } from '../boot/env.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import { ownCommand, ownFolder } from '../ops/own-command.ts'
import { type CliIo, getConfig, type Run } from './command.ts'

export const printService: Run<{ launchd?: true }> = (io, _args, { launchd }) => {
  const service = getService(io)
  io.stdout(launchd ? launchdPlist(service) : systemdUnit(service))
  return 0
}

interface Service {
  /** The program. */
  command: readonly string[]
  /** Its working directory; null: any. */
  folder: string | null
  dataDir: string
  /** Environment variables; secrets belong in the data folder's `.env`. */
  environment: Readonly<Record<string, string>>
  /** Warnings to read before saving it, a sentence or two each. */
  warnings: readonly string[]
  /** Seconds for finishing running requests. */
  drainSeconds: number
  /** The user whose home contains the folder, its key or the program; null: none, so the service can have its own user. */
  homeOf: string | null
}

const getService = (io: CliIo): Service => {
  const config = getConfig(io)
  const dataDir = resolve(config.DATA_DIR)
  const command = ownCommand().map((part) => resolve(part))
  const inHome = [dataDir, resolve(getFolderPaths(config).keyPath), ...command].find(isInHome)
  const user = inHome === undefined ? null : getUser(io)
  const { environment, warnings } = getEnvironment(io, { dataDir, host: config.HOST, port: config.PORT })
  return {
    command,
    folder: ownFolder(),
    dataDir,
    homeOf: inHome === undefined ? null : (user ?? 'sluice'),
    environment,
    warnings: inHome !== undefined && user === null ? [...warnings, ownerWarning(inHome)] : warnings,
    drainSeconds: config.SHUTDOWN_DRAIN_SECONDS,
  }
}

/** The current user; null: unknown. Variables come second, because `su` keeps the previous user's. */
const getUser = ({ environment: { LOGNAME, USER } }: CliIo): string | null =>
  [loginName(), LOGNAME, USER].find((name) => name && USER_NAME.test(name)) ?? null

/** As accepted by `useradd`. */
const USER_NAME = /^[a-z_][\w.-]*\$?$/i

const loginName = (): string | null => {
  try {
    return Bun.spawnSync(['id', '-un']).stdout.toString().trim() || null
  } catch {
    return null // the program does not exist here
  }
}

const ownerWarning = (path: string): string => `The owner of ${path} could not be determined: set User= to it.`

/** Leaves out variables from the data folder's `.env`, which the service reads itself. */
const getEnvironment = (io: CliIo, { dataDir, host, port }: { dataDir: string; host: string; port: number }) => {
  const inFile = new Map(
    variablesSet(withEnvFile({ SLUICE_DATA_DIR: dataDir })).map(({ name, value }) => [name, value]),
  )
  const given = variablesSet(io.environment).filter(({ name, value }) => inFile.get(name) !== value)
  const plain = given.filter(({ isSecret }) => !isSecret).map(({ name, value }) => [name, toPath(name, value)])
  const defaults = {
    ...(inFile.has('HOST') ? {} : { HOST: host }),
    ...(inFile.has('PORT') ? {} : { PORT: String(port) }),
  }
  const secrets = given.filter(({ isSecret }) => isSecret).map(({ name }) => name)
  return {
    environment: { ...defaults, ...Object.fromEntries(plain), SLUICE_DATA_DIR: dataDir },
    warnings: [...secretsWarning(secrets, dataDir), ...cacheWarning()],
  }
}

const toPath = (name: string, value: string): string => (name === 'SLUICE_ENCRYPTION_KEY_FILE' ? resolve(value) : value)

const secretsWarning = (names: readonly string[], dataDir: string): string[] =>
  names.length === 0 ? [] : [`Secrets are left out: ${names.join(', ')}. Write them to ${dataDir}/.env (mode 600).`]

const cacheWarning = (): string[] =>
  process.execPath.includes('/_npx/')
    ? [
        `Bun is in the cache of npx, which npm may delete. Install it: npm install -g bun@${Bun.version}`,
        'Then run "bun src/main.ts service print" again.',
      ]
    : []

const isInHome = (path: string): boolean => /^\/(home|root|Users)\//.test(path)

/** In addition to draining: the last records are written afterwards. */
const GRACE_SECONDS = 15

/** Removes privileges the service does not need (systemd.exec(5)). */
const systemdUnit = ({ command, folder, dataDir, environment, drainSeconds, homeOf, warnings }: Service): string =>
  `# Save as /etc/systemd/system/sluice.service, then:
#   systemctl daemon-reload && systemctl enable --now sluice
${warnings.map((warning) => `# ${warning}\n`).join('')}${homeOf === null ? ownUser(dataDir) : ''}[Unit]
Description=Sluice, a proxy for a pool of ChatGPT accounts
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart=${commandLine([...command, 'serve'])}
# systemctl reload sluice: replaces the server by the program on disk, without ending a request.
ExecReload=${commandLine([...command, 'reload'])}
TimeoutStartSec=${START_SECONDS}
${folder === null ? '' : `WorkingDirectory=${folder.replaceAll('%', '%%')}\n`}${Object.entries(environment)
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

/** For the migrations of a large database, at a start and at a reload. */
const START_SECONDS = 330

const commandLine = (words: readonly string[]): string =>
  words.map((word) => systemdWord(word.replaceAll('$', '$$$$'))).join(' ')

const ownUser = (dataDir: string): string => `# It runs as a user of its own. Create the user and its folder:
#   useradd --system --home-dir ${shellWord(dataDir)} --shell /usr/sbin/nologin sluice
#   install -d -o sluice -m 0700 ${shellWord(dataDir)}
`

const shellWord = (word: string): string => (/^[\w./:=@%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** Quoted where required; `%` starts a specifier (systemd.syntax(7), systemd.unit(5)). */
const systemdWord = (word: string): string => {
  const plain = word.replaceAll('%', '%%')
  return /^[\w./:=@%$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

const launchdPlist = ({ command, folder, environment, drainSeconds, warnings }: Service): string =>
  `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Save as ~/Library/LaunchAgents/sluice.plist, then: launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/sluice.plist -->
${warnings.map((warning) => `<!-- ${xml(warning.replaceAll('--', '- -'))} -->\n`).join('')}<plist version="1.0">
<dict>
  <key>Label</key>
  <string>sluice</string>
  <key>ProgramArguments</key>
  <array>
${[...command, 'serve'].map((part) => `    <string>${xml(part)}</string>`).join('\n')}
  </array>
${folder === null ? '' : `  <key>WorkingDirectory</key>\n  <string>${xml(folder)}</string>\n`}  <key>EnvironmentVariables</key>
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
