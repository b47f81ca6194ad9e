/** The Browser tab: a link to ChatGPT that is ready to use, and a field for the URL if the browser does not come back. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Field } from '../ui/form.tsx'
import { Ended } from './new-ended.tsx'
import {
  AddFrame,
  AsTarget,
  Begin,
  Cancel,
  type SignInProps,
  type SignInValue,
  StepForm,
  Waiting,
} from './new-frame.tsx'

export const NewBrowser: FC<SignInProps> = ({ flow, target, pools, problem }) => {
  if (flow === null) return <Intro {...{ target, pools, problem }} />
  return flow.status === 'pending' ? <Pending flow={flow} problem={problem} /> : <Ended flow={flow} />
}

/** With scripts this is replaced by the link as soon as it is ready. */
const Intro: FC<Omit<SignInProps, 'flow'>> = ({ target, pools, problem }) => (
  <AddFrame way="browser" target={target}>
    <p>Sign in at chatgpt.com. You'll be brought back here.</p>
    <AsTarget target={target} />
    <Begin method="browser" label="Get the sign-in link" isSentOnLoad {...{ target, pools, problem }} />
  </AddFrame>
)

const Pending: FC<{ flow: SignInValue; problem: string | null }> = ({ flow, problem }) => (
  <AddFrame way="browser" target={flow.target}>
    <p>{COMES_BACK[flow.callback ?? 'listening']}</p>
    <AsTarget target={flow.target} />
    <ButtonLink isMain isWide href={flow.authorizationUrl ?? ''} target="_blank" rel="noopener noreferrer">
      Continue to ChatGPT ↗
    </ButtonLink>
    <Waiting flow={flow} text="Waiting for you to sign in." />
    <Paste flow={flow} problem={problem} />
    <Cancel flow={flow} />
  </AddFrame>
)

const COMES_BACK: Record<NonNullable<SignInValue['callback']>, string> = {
  listening: "Sign in at chatgpt.com. You'll be brought back here.",
  port_busy:
    "Sign in at chatgpt.com. Another program uses the port Sluice needs, so you won't be brought back: paste the URL of the last page below.",
  remote: "Sign in at chatgpt.com. Sluice runs on another machine, so the last page won't load: paste its URL below.",
}

/** Open initially if it will be needed. */
const Paste: FC<{ flow: SignInValue; problem: string | null }> = ({ flow, problem }) => (
  <details class="fold paste" open={flow.callback !== 'listening' || problem !== null}>
    <summary class="reveal">Didn't come back? Paste the URL</summary>
    <StepForm name="paste" action="/api/oauth/manual-callback" problem={problem}>
      <p>
        Ended on a page that won't load? Copy its full URL and paste it here. It starts with{' '}
        <code>{flow.callbackUrl}</code>.
      </p>
      <input type="hidden" name="flowId" value={flow.flowId} />
      <Field
        label="URL of the last page"
        name="callbackUrl"
        placeholder={`${flow.callbackUrl}?code=…`}
        autocomplete="off"
        maxlength={8192}
        required
      />
      <div class="actions">
        <Submit isPlain>Finish sign-in</Submit>
      </div>
    </StepForm>
  </details>
)
