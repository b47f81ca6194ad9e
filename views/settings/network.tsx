/** Settings, Network: the firewall, trusted reverse proxies, and the outbound proxy. */
import type { FC } from 'hono/jsx'
import { Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, Field, Form, NeedsScript, Outcome } from '../ui/form.tsx'
import { Since } from '../ui/time.tsx'
import type { Variable } from './about.tsx'
import { EgressCards, type EgressPage } from './egress.tsx'
import { type Frame, SettingsFrame } from './frame.tsx'
import { SettingsCard, type ShownSettings, UnsavedBar } from './section.tsx'
import { Variables } from './variables.tsx'

/** Common to all settings pages. */
export interface Page {
  frame: Frame
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
}

interface FirewallView {
  mode: 'allow_all' | 'allowlist_active'
  entries: { ipAddress: string /** ISO 8601 */; createdAt: string }[]
}

export interface Network extends Page {
  firewall: FirewallView
  /** The user may change the list. */
  isGuard: boolean
  /**
   * While the list is empty, for users who may change it: addresses that used the proxy in the last day, most requests
   * first.
   */
  callers: string[]
  /** How Sluice sees this request; null, like the next two, when hidden from the user. */
  seen: { clientIp: string | null; peer: string | null; isLocal: boolean } | null
  proxies: Variable[] | null
  egress: { targets: EgressTarget[]; variables: Variable[] } | null
  settings: ShownSettings | null
  /** The proxies of accounts; null: hidden from the user. */
  accountProxies: EgressPage | null
}

export interface EgressTarget {
  /** Scheme and host. */
  origin: string
  /** null: a direct call. */
  variable: string | null
  /** The variable is unusable. */
  why: string | null
}

export const NetworkPage: FC<Network> = (network) => {
  const { frame, now, done, problem, proxies, egress, settings, accountProxies, isGuard } = network
  return (
    <SettingsFrame frame={frame} now={now} title="Network">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      <NeedsScript />
      <Firewall {...network} />
      {proxies && (
        <TextCard id="proxies" title="Trusted proxies">
          <p class="form-intro">
            Forwarded headers are trusted only from these addresses. Set this in the environment and restart Sluice.
          </p>
          <Seen {...network} />
          <Variables variables={proxies} />
        </TextCard>
      )}
      {settings && <SettingsCard section="egress" settings={settings} />}
      {accountProxies && <EgressCards {...accountProxies} isGuard={isGuard} now={now} />}
      {egress && <Egress {...egress} />}
      {settings && <UnsavedBar />}
    </SettingsFrame>
  )
}

const Firewall: FC<Network> = ({ firewall: { mode, entries }, isGuard, callers, seen, now }) => (
  <Card id="firewall" title="Firewall" count={entries.length || null}>
    <div class="card-body">
      <p>
        {mode === 'allow_all'
          ? 'The list is empty. Every address can connect.'
          : 'Only listed addresses can connect. Requests from other addresses are rejected before their key is checked.'}{' '}
        <span class="muted">The firewall doesn’t protect the dashboard.</span>
        {isGuard && entries.length === 0 && ' Adding the first entry blocks every other address immediately.'}
      </p>
    </div>
    {entries.length > 0 && (
      <ul class="rows">
        {entries.map(({ ipAddress, createdAt }) => (
          <li class="row">
            <span class="row-main">
              <code>{ipAddress}</code>{' '}
              <span class="muted small">
                added <Since at={createdAt} now={now} />
              </span>
            </span>
            {isGuard && (
              <Action
                name={`firewall-${ipAddress.replaceAll(/[^\w]/g, '-')}`}
                action={`/api/firewall/ips/${encodeURIComponent(ipAddress)}`}
                method="delete"
                label="Remove"
                confirm={removalText(ipAddress, entries.length)}
                isRisky
              />
            )}
          </li>
        ))}
      </ul>
    )}
    {isGuard && (
      <Form
        name="firewall"
        class="row-form card-part"
        action="/api/firewall/ips"
        confirm={entries.length === 0 ? firstText(callers, seen?.clientIp ?? null) : undefined}
      >
        <Field
          label="Address or range"
          name="ipAddress"
          placeholder="192.0.2.7 or 10.0.0.0/8"
          autocomplete="off"
          maxlength={100}
          hint={seen?.clientIp ? `Your address is ${seen.clientIp}.` : undefined}
          required
        />
        <Submit>Add</Submit>
      </Form>
    )}
  </Card>
)

const firstText = (callers: readonly string[], own: string | null): string =>
  [
    'Add the first entry? From then on, only listed addresses can connect.',
    callers.length > 0 &&
      `Clients connected from these addresses in the last 24 hours: ${callers.join(', ')}. Any that the entry doesn’t cover are rejected immediately.`,
    own && `Your address is ${own}.`,
  ]
    .filter(Boolean)
    .join(' ')

const removalText = (ipAddress: string, count: number): string =>
  count === 1
    ? `Remove ${ipAddress}? It is the last entry, so every address can connect afterwards.`
    : `Remove ${ipAddress}? Requests from there are rejected from now on.`

const Seen: FC<Network> = ({ seen }) =>
  seen && (
    <p>
      Your request came from <code>{seen.peer ?? 'a local socket'}</code>. Sluice treats it as coming from{' '}
      <code>{seen.clientIp ?? 'an unknown address'}</code>
      {seen.isLocal ? ' (this machine).' : ' (another machine).'}
    </p>
  )

const Egress: FC<NonNullable<Network['egress']>> = ({ targets, variables }) => (
  <TextCard id="egress-environment" title="Proxy of the environment">
    <p class="form-intro">
      How accounts without a proxy pool connect to ChatGPT. Set this in the environment. If a proxy can’t be used,
      requests fail instead of bypassing it.
    </p>
    <ul class="bullets">
      {targets.map((target) => (
        <li>
          <code>{target.origin}</code>: {targetText(target)}
        </li>
      ))}
    </ul>
    <Variables variables={variables} />
  </TextCard>
)

const targetText = ({ variable, why }: EgressTarget): string => {
  if (variable === null) return 'direct connection'
  return why === null ? `through the proxy in ${variable}` : `fails, because ${variable} can’t be used: ${why}`
}
