/** What Sluice does not enforce while keys are optional, the button to require them, and the same offer with the first key. */
import type { FC } from 'hono/jsx'
import { ButtonLink } from '../ui/button.tsx'
import { withReturn } from '../ui/centered-card.tsx'
import { Action, Check } from '../ui/form.tsx'
import { WarningIcon } from '../ui/icons.tsx'
import { LivePart } from '../ui/live.tsx'

export interface OptionalKeys {
  /** `SLUICE_PROXY_UNAUTHENTICATED_CLIENT_CIDRS` names ranges that need no key either. */
  hasExemptRanges: boolean
  /** Why the user cannot require keys; null: they can. */
  whyNot: 'permission' | 'confirmation' | null
}

interface BarProps {
  /** null: keys are required, so there is no bar. */
  optional: OptionalKeys | null
  /** The page's URL. */
  src: string
  /** Whether the page is about one key. */
  isOneKey?: boolean
}

export const OptionalKeysBar: FC<BarProps> = ({ optional, src, isOneKey = false }) => (
  <LivePart id="keys-optional" topics={['settings']} src={src}>
    {optional && (
      <section class="keys-optional note" aria-label="Keys are optional">
        <WarningIcon />
        <p>
          <strong>Keys are optional.</strong> Clients on this machine can connect without a key or with an unrecognized
          one{optional.hasExemptRanges && <ExemptRanges />}.{' '}
          {isOneKey
            ? 'The limits and models of this key apply only to requests that send it.'
            : 'Limits and allowed models apply only to requests that send a valid key.'}
        </p>
        <Switch {...optional} src={src} />
      </section>
    )}
  </LivePart>
)

const ExemptRanges: FC = () => (
  <>
    , and so can the ranges in <code>SLUICE_PROXY_UNAUTHENTICATED_CLIENT_CIDRS</code>
  </>
)

const Switch: FC<Pick<OptionalKeys, 'whyNot'> & { src: string }> = ({ whyNot, src }) => {
  if (whyNot === 'permission') return <span class="muted small">An admin can require keys.</span>
  if (whyNot === 'confirmation')
    return <ButtonLink href={withReturn('/me/two-factor', src)}>Set up two-factor to require keys</ButtonLink>
  return (
    <Action
      name="require-keys"
      action="/api/settings"
      method="patch"
      values={{ apiKeyAuthEnabled: 'true' }}
      label="Require keys"
      confirm="Require a key from every client? Clients without a valid key are rejected from their next request."
    />
  )
}

/** On the form of the first key. */
export const RequireKeys: FC<Pick<OptionalKeys, 'whyNot'>> = ({ whyNot }) => {
  if (whyNot === 'permission')
    return <p class="hint">Clients on this machine can still connect without a key. An admin can require keys.</p>
  if (whyNot === 'confirmation')
    return (
      <p class="hint">
        Clients on this machine can still connect without a key. To require keys,{' '}
        <a href="/me/two-factor?return=%2Fkeys%2Fnew">set up two-factor authentication</a> first.
      </p>
    )
  return (
    <Check
      name="requireKeys"
      label="Require a key from now on (recommended)"
      hint="Clients without a valid key are rejected. Otherwise clients on this machine can connect without one."
      isOn
    />
  )
}
