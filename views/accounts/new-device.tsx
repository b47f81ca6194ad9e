/** The Code tab: a code large enough to read from across the room, with a copy button and the time it has left. */
import type { FC } from 'hono/jsx'
import { CopyButton } from '../ui/button.tsx'
import { Ended } from './new-ended.tsx'
import { AddFrame, AsTarget, Begin, Cancel, type SignInProps, type SignInValue, Waiting } from './new-frame.tsx'

export const NewDevice: FC<SignInProps> = ({ flow, target, pools, problem }) => {
  if (flow === null) return <Intro {...{ target, pools, problem }} />
  return flow.status === 'pending' ? <Pending flow={flow} /> : <Ended flow={flow} />
}

/** With scripts this is replaced by the code as soon as it is ready. */
const Intro: FC<Omit<SignInProps, 'flow'>> = ({ target, pools, problem }) => (
  <AddFrame way="device" target={target}>
    <p>Get a code and enter it at OpenAI on any device.</p>
    <AsTarget target={target} />
    <Begin method="device" label="Get a code" isSentOnLoad {...{ target, pools, problem }} />
  </AddFrame>
)

const Pending: FC<{ flow: SignInValue }> = ({ flow }) => (
  <AddFrame way="device" target={flow.target}>
    <p class="device-where">
      On any device, open{' '}
      <a href={flow.verificationUrl ?? ''} target="_blank" rel="noopener noreferrer">
        {flow.verificationUrl?.replace(/^https?:\/\//, '')}
      </a>{' '}
      and enter this code:
    </p>
    <AsTarget target={flow.target} />
    <div class="device-code">
      <output class="device-code-text">{flow.userCode}</output>
      <CopyButton label="Copy code" />
    </div>
    <Waiting flow={flow} text="Waiting for the code to be entered." />
    <p class="muted small">Don't share this code. Anyone who enters it adds their own account to Sluice.</p>
    <Cancel flow={flow} />
  </AddFrame>
)
