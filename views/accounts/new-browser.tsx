/** Signing in with the browser: open the page of the service, come back by itself, or paste the address one ended on. */
import type { FC } from 'hono/jsx'
import type { SignInValue } from '../../src/admin/sign-in-value.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Field } from '../ui/form.tsx'
import { Ended } from './new-ended.tsx'
import { Begin, Cancel, Frame, Leave, type SignInProps, StepForm, titleOf, Waiting } from './new-frame.tsx'

export const NewBrowser: FC<SignInProps> = ({ flow, target, problem }) => {
  if (flow === null) return <Intro {...{ target, problem }} />
  return flow.status === 'pending' ? <Pending flow={flow} problem={problem} /> : <Ended flow={flow} />
}

const Intro: FC<Omit<SignInProps, 'flow'>> = ({ target, problem }) => (
  <Frame title={titleOf(target, 'Sign in with this browser')}>
    <p>
      You sign in on the page of the service and are sent back here.
      {target && ` Sign in as ${target.displayName}: anybody else is refused, and nothing is changed.`}
    </p>
    <Begin method="browser" label="Begin the sign-in" {...{ target, problem }} />
  </Frame>
)

const Pending: FC<{ flow: SignInValue; problem: string | null }> = ({ flow, problem }) => (
  <Frame title={titleOf(flow.target, 'Sign in with this browser')}>
    <div class="actions">
      <ButtonLink isMain href={flow.authorizationUrl ?? ''} target="_blank" rel="noopener noreferrer">
        Open the sign-in page
      </ButtonLink>
      <Leave label="Close" />
      <Cancel flow={flow} />
    </div>
    <Waiting flow={flow} text="Waiting for you to come back." />
    <Paste flow={flow} problem={problem} />
  </Frame>
)

const WHY: Record<NonNullable<SignInValue['callback']>, string> = {
  listening: 'Only needed when the browser cannot open the last page:',
  port_busy: 'Another program uses the port of the last page, so you will not come back by yourself:',
  remote: 'Sluice runs on another machine, so the last page will not open in your browser:',
}

/** Open from the start where it will be needed. */
const Paste: FC<{ flow: SignInValue; problem: string | null }> = ({ flow, problem }) => {
  const callback = flow.callback ?? 'listening'
  return (
    <details class="fold paste" open={callback !== 'listening' || problem !== null}>
      <summary class="reveal">Paste the address instead</summary>
      <StepForm name="paste" action="/api/oauth/manual-callback" problem={problem}>
        <p>
          {WHY[callback]} copy its whole address, which begins with <code>{flow.callbackUrl}</code>, and paste it here.
        </p>
        <input type="hidden" name="flowId" value={flow.flowId} />
        <Field
          label="Address of the last page"
          name="callbackUrl"
          placeholder={`${flow.callbackUrl}?code=…`}
          autocomplete="off"
          maxlength={8192}
          required
        />
        <div class="actions">
          <Submit isPlain>Finish the sign-in</Submit>
        </div>
      </StepForm>
    </details>
  )
}
