/** What the pages that add an account have in common: the region that is swapped, its form, and the ways on. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { KnownAccount, SignInValue } from '../../src/admin/sign-in-value.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Problem } from '../ui/form.tsx'
import { Until } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'

const REGION = 'new-account'

interface FrameProps {
  title: string
  isWide?: boolean
  /** The page behind the dialog is out of date once this is shown. */
  isChange?: boolean
}

export const Frame: FC<PropsWithChildren<FrameProps>> = ({ title, isWide, isChange, children }) => (
  <div id={REGION} class={isWide ? 'narrow new-account new-account-wide' : 'narrow new-account'}>
    <section class="card panel" aria-labelledby={`${REGION}-title`} data-reload={isChange}>
      <h1 id={`${REGION}-title`}>{title}</h1>
      {children}
    </section>
  </div>
)

interface StepFormProps {
  /** `[\w-]+`; the server answers errors into the form of this name. */
  name: string
  action: string
  problem?: string | null
  hasFiles?: boolean
}

/** Its answer is the next step, in the same place. */
export const StepForm: FC<PropsWithChildren<StepFormProps>> = ({ name, action, problem, hasFiles, children }) => (
  <form
    id={`form-${name}`}
    class="stack"
    method="post"
    action={action}
    enctype={hasFiles ? 'multipart/form-data' : undefined}
    hx-post={action}
    hx-target={`#${REGION}`}
    hx-swap="outerHTML"
    hx-disable="find button"
  >
    {children}
    <div id={`form-${name}-problem`} class="form-problem" role="alert">
      {problem && <Problem text={problem} />}
    </div>
  </form>
)

export interface SignInProps {
  /** Null: none was begun yet. */
  flow: SignInValue | null
  /** The account to be signed in again. */
  target: KnownAccount | null
  problem: string | null
}

export const titleOf = (target: KnownAccount | null, title: string): string =>
  target ? `Sign in again: ${target.displayName}` : title

interface BeginProps extends Pick<SignInProps, 'target' | 'problem'> {
  method: SignInValue['method']
  label: string
}

/** The button that begins a sign-in. */
export const Begin: FC<PropsWithChildren<BeginProps>> = ({ method, label, target, problem, children }) => (
  <StepForm name={`begin-${method}`} action="/api/oauth/start" problem={problem}>
    <input type="hidden" name="forceMethod" value={method} />
    {target && <input type="hidden" name="accountId" value={target.accountId} />}
    <div class="actions">
      <button class="button" type="submit" autofocus>
        {label}
      </button>
      <Back target={target} />
      {children}
    </div>
  </StepForm>
)

export const Back: FC<{ target: KnownAccount | null }> = ({ target }) => (
  <ButtonLink href={withQuery('/accounts/new', { account: target?.accountId })}>Another way</ButtonLink>
)

/** Leaves the dialog, or goes to the accounts. */
export const Leave: FC<{ label: string; to?: string; isMain?: boolean }> = ({ label, to = '/accounts', isMain }) => (
  <ButtonLink isMain={isMain} href={to} data-action="close">
    {label}
  </ButtonLink>
)

/** Ends the sign-in itself; who only leaves the page lets it wait. */
export const Cancel: FC<{ flow: SignInValue }> = ({ flow }) => (
  <StepForm name="cancel" action="/api/oauth/cancel">
    <input type="hidden" name="flowId" value={flow.flowId} />
    <Submit isPlain>Cancel the sign-in</Submit>
  </StepForm>
)

/** Asks every two seconds whether it is over; nothing is touched until it is. Without script one asks by a link. */
export const Waiting: FC<{ flow: SignInValue; text: string }> = ({ flow, text }) => {
  const path = `/accounts/new/${flow.method}`
  return (
    <>
      <p
        class="waiting"
        role="status"
        hx-get={withQuery(path, { flow: flow.flowId, waiting: '1' })}
        hx-trigger="every 2s"
        hx-target={`#${REGION}`}
        hx-swap="outerHTML"
        data-poll
        data-now={flow.generatedAt}
      >
        <span class="spinner" aria-hidden="true" />
        <span>
          {text}{' '}
          <span class="muted">
            It ends <Until at={flow.expiresAt} now={flow.generatedAt} />.
          </span>
        </span>
      </p>
      <noscript>
        <ButtonLink href={withQuery(path, { flow: flow.flowId })}>See whether it worked</ButtonLink>
      </noscript>
    </>
  )
}
