/** Settings, Network: who may call the proxy, what is believed of the proxies before it, and how calls leave. */
import type { FC } from 'hono/jsx'
import type { EgressTarget, Network } from '../../src/admin/settings-pages.ts'
import { Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, Field, Form, NeedsScript, Outcome } from '../ui/form.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { Variables } from './variables.tsx'

export const NetworkPage: FC<Network> = (network) => {
  const { frame, now, done, problem, proxies, egress } = network
  return (
    <SettingsFrame frame={frame} now={now} title="Network">
      <Outcome done={done} problem={problem} />
      <NeedsScript />
      <Firewall {...network} />
      {proxies && (
        <TextCard id="proxies" title="Trusted proxies">
          <p class="form-intro">
            A reverse proxy is believed what it says about the client when its own address is in these ranges. The
            environment sets this; a change needs a restart.
          </p>
          <Seen {...network} />
          <Variables variables={proxies} />
        </TextCard>
      )}
      {egress && <Egress {...egress} />}
    </SettingsFrame>
  )
}

const Firewall: FC<Network> = ({ firewall: { mode, entries }, isGuard, callers, seen, now }) => (
  <Card id="firewall" title="Firewall" count={entries.length || null}>
    <div class="card-body">
      <p>
        {mode === 'allow_all'
          ? 'The list is empty: every address may call the proxy, as far as its key allows.'
          : 'Only the addresses of the list may call the proxy; all others are refused before their key is looked at.'}{' '}
        <span class="muted">The dashboard is not behind it.</span>
        {isGuard && entries.length === 0 && ' The first entry shuts out everybody else at once.'}
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
          hint={seen?.clientIp ? `This browser comes from ${seen.clientIp}.` : undefined}
          required
        />
        <Submit>Add</Submit>
      </Form>
    )}
  </Card>
)

const firstText = (callers: readonly string[], own: string | null): string =>
  [
    'This is the first entry: from then on only addresses of the list may call the proxy.',
    callers.length > 0 &&
      `Called in the last day: ${callers.join(', ')}. What the entry leaves out is refused at once.`,
    own && `This browser comes from ${own}.`,
  ]
    .filter(Boolean)
    .join(' ')

const removalText = (ipAddress: string, count: number): string =>
  count === 1
    ? `Remove ${ipAddress}? It is the last one: every address may call the proxy then.`
    : `Remove ${ipAddress}? Clients there are refused from then on.`

const Seen: FC<Network> = ({ seen }) =>
  seen && (
    <p>
      This request came from <code>{seen.peer ?? 'a local socket'}</code> and counts as{' '}
      <code>{seen.clientIp ?? 'an unknown address'}</code>
      {seen.isLocal ? ', on this machine.' : ', another machine.'}
    </p>
  )

const Egress: FC<NonNullable<Network['egress']>> = ({ targets, variables }) => (
  <TextCard id="egress" title="Outbound proxy">
    <p class="form-intro">
      How calls leave this machine. The environment sets this; where a proxy cannot be used, calls fail rather than go
      around it.
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
  if (variable === null) return 'directly'
  return why === null ? `through the proxy of ${variable}` : `refused, because ${variable} cannot be used: ${why}`
}
