/** Signing in with a code: large enough to be typed from across the room, with the time it has left. */
import type { FC } from 'hono/jsx'
import type { SignInValue } from '../../src/admin/sign-in-value.ts'
import { CopyButton } from '../ui/button.tsx'
import { Ended } from './new-ended.tsx'
import { Begin, Cancel, Frame, Leave, type SignInProps, titleOf, Waiting } from './new-frame.tsx'

export const NewDevice: FC<SignInProps> = ({ flow, target, problem }) => {
  if (flow === null) return <Intro {...{ target, problem }} />
  return flow.status === 'pending' ? <Pending flow={flow} /> : <Ended flow={flow} />
}

const Intro: FC<Omit<SignInProps, 'flow'>> = ({ target, problem }) => (
  <Frame title={titleOf(target, 'Sign in with a code')}>
    <p>
      You get a code, and type it in on the page of the service, on any device.
      {target && ` Sign in as ${target.displayName}: anybody else is refused, and nothing is changed.`}
    </p>
    <Begin method="device" label="Get a code" {...{ target, problem }} />
  </Frame>
)

const Pending: FC<{ flow: SignInValue }> = ({ flow }) => (
  <Frame title={titleOf(flow.target, 'Sign in with a code')}>
    <ol class="device-steps">
      <li>
        Open{' '}
        <a href={flow.verificationUrl ?? ''} target="_blank" rel="noopener noreferrer">
          {flow.verificationUrl?.replace(/^https?:\/\//, '')}
        </a>{' '}
        and sign in.
      </li>
      <li>
        Type in this code:
        <div class="device-code">
          <output class="device-code-text">{flow.userCode}</output>
          <CopyButton label="Copy the code" />
        </div>
      </li>
    </ol>
    <p class="muted">Type it only on that page, and give it to nobody: whoever enters it adds their account here.</p>
    <Waiting flow={flow} text="Waiting for the code to be used." />
    <div class="actions">
      <Leave label="Close" />
      <Cancel flow={flow} />
    </div>
  </Frame>
)
