/** Settings, Network: who may call the proxy, what is believed of the proxies before it, and how calls leave. */
import type { FC } from 'hono/jsx'
import type { EgressTarget, Network } from '../../src/admin/settings-pages.ts'
import { Action } from '../people/list.tsx'
import { Field, Form } from '../ui/form.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { Outcome, Variables } from './parts.tsx'

export const NetworkPage: FC<Network> = (network) => {
  const { frame, now, done, problem, proxies, egress } = network
  return (
    <SettingsFrame frame={frame} now={now} title="Network">
      <Outcome done={done} problem={problem} />
      <Firewall {...network} />
      {proxies && (
        <section class="card" id="proxies" aria-labelledby="proxies-title">
          <header class="card-head">
            <h2 id="proxies-title">Trusted proxies</h2>
          </header>
          <div class="card-body">
            <p class="form-intro">
              A reverse proxy is believed what it says about the client when its own address is in these ranges. The
              environment sets this; a change needs a restart.
            </p>
            <Seen {...network} />
            <Variables variables={proxies} />
          </div>
        </section>
      )}
      {egress && <Egress {...egress} />}
    </SettingsFrame>
  )
}

const Firewall: FC<Network> = ({ firewall: { mode, entries }, isGuard, seen, now }) => (
  <section class="card" id="firewall" aria-labelledby="firewall-title">
    <header class="card-head">
      <h2 id="firewall-title">Firewall</h2>
      {entries.length > 0 && <span class="count">{entries.length}</span>}
    </header>
    <div class="card-body">
      <p>
        {mode === 'allow_all'
          ? 'The list is empty: every address may call the proxy, as far as its key allows.'
          : 'Only the addresses of the list may call the proxy; all others are refused before their key is looked at.'}{' '}
        <span class="muted">The dashboard is not behind it.</span>
      </p>
    </div>
    {entries.length > 0 && (
      <ul class="rows firewall">
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
      <Form name="firewall" class="row-form card-part firewall-add" action="/api/firewall/ips">
        <Field
          label="Address or range"
          name="ipAddress"
          placeholder="192.0.2.7 or 10.0.0.0/8"
          autocomplete="off"
          maxlength={100}
          hint={seen?.clientIp ? `This browser comes from ${seen.clientIp}.` : undefined}
          required
        />
        <button class="button" type="submit">
          Add
        </button>
      </Form>
    )}
  </section>
)

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
  <section class="card" id="egress" aria-labelledby="egress-title">
    <header class="card-head">
      <h2 id="egress-title">Outbound proxy</h2>
    </header>
    <div class="card-body">
      <p class="form-intro">
        How calls leave this machine. The environment sets this; a proxy that cannot be used is never passed by.
      </p>
      <ul class="bullets">
        {targets.map((target) => (
          <li>
            <code>{target.origin}</code>: {targetText(target)}
          </li>
        ))}
      </ul>
      <Variables variables={variables} />
    </div>
  </section>
)

const targetText = ({ variable, why }: EgressTarget): string => {
  if (variable === null) return 'directly'
  return why === null ? `through the proxy of ${variable}` : `refused, because ${variable} cannot be used: ${why}`
}
