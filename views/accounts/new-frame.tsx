/** The parts shared by the pages that add an account: the region that is swapped, its tabs, its forms, and Cancel. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { FlowRow } from '../../src/model/accounts/oauth-flows.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Problem } from '../ui/form.tsx'
import { getOptions, Select } from '../ui/select.tsx'
import { Countdown } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'

export interface KnownAccount {
  accountId: string
  displayName: string
  planType: string
}

export interface SignInValue {
  flowId: string
  method: FlowRow['method']
  status: FlowRow['status']
  /** A sentence, after it failed. */
  errorMessage: string | null
  /** A user cancelled it here, so it is not shown as an error. */
  isCancelled: boolean
  /** The account to sign in again; null: the sign-in adds an account. */
  target: KnownAccount | null
  /** The pool of outbound proxies of a new account; null: as the settings say. */
  egressPoolId: string | null
  /** The result. */
  account: KnownAccount | null
  /** Whether it is still paused. */
  isPaused: boolean
  /** Where to sign in. */
  authorizationUrl: string | null
  /** Where the browser returns, and whether Sluice receives that itself. */
  callbackUrl: string | null
  callback: 'listening' | 'port_busy' | 'remote' | null
  verificationUrl: string | null
  userCode: string | null
  /** The flow's id, like `flowId`. OpenAI's own id is never sent out: with the code it would give access to the account. */
  deviceAuthId: string | null
  intervalSeconds: number | null
  expiresInSeconds: number
  /** ISO 8601, both. */
  expiresAt: string
  generatedAt: string
}

const REGION = 'new-account'

const WAYS = [
  ['browser', 'Browser'],
  ['device', 'Code'],
  ['import', 'File'],
] as const
export type Way = (typeof WAYS)[number][0]

export const getTabPath = (way: Way): string => `/accounts/new/${way}`

interface FrameProps {
  title: string
  isWide?: boolean
  /** The page behind the dialog is outdated once this is shown. */
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

interface AddFrameProps {
  way: Way
  /** The account to sign in again. */
  target: KnownAccount | null
}

/** "Add account" with its three ways as tabs. A file can't be limited to one account, so signing in again offers two. */
export const AddFrame: FC<PropsWithChildren<AddFrameProps>> = ({ way, target, children }) => (
  <Frame title={target ? `Sign in again: ${target.displayName}` : 'Add account'}>
    <nav class="tabs" aria-label="Ways to sign in">
      {WAYS.filter(([path]) => !(target && path === 'import')).map(([path, label]) => (
        <a
          href={withQuery(getTabPath(path), { account: target?.accountId })}
          aria-current={path === way ? 'page' : undefined}
        >
          {label}
        </a>
      ))}
    </nav>
    {children}
  </Frame>
)

interface StepFormProps {
  /** `[\w-]+`; the server answers errors into the form of this name. */
  name: string
  action: string
  problem?: string | null
  hasFiles?: boolean
  /** Submitted by the script as soon as it is shown. */
  isSentOnLoad?: boolean
}

/** A form whose answer replaces it with the next step. */
export const StepForm: FC<PropsWithChildren<StepFormProps>> = ({ name, action, problem, children, ...options }) => (
  <form
    id={`form-${name}`}
    class="stack"
    method="post"
    action={action}
    enctype={options.hasFiles ? 'multipart/form-data' : undefined}
    hx-post={action}
    hx-trigger={options.isSentOnLoad ? 'load, submit' : undefined}
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
  /** Null: none has been started. */
  flow: SignInValue | null
  /** The account to sign in again. */
  target: KnownAccount | null
  /** Pools of outbound proxies for a new account. Empty: no choice. */
  pools: readonly { id: string; name: string }[]
  problem: string | null
}

interface BeginProps extends Pick<SignInProps, 'target' | 'pools' | 'problem'> {
  method: SignInValue['method']
  label: string
  /** The pool that was chosen before. */
  poolId?: string | null
  isSentOnLoad?: boolean
}

/** The button that starts a sign-in. */
export const Begin: FC<BeginProps> = ({ method, label, target, pools, poolId, problem, isSentOnLoad }) => (
  <StepForm
    name={`begin-${method}`}
    action="/api/oauth/start"
    problem={problem}
    isSentOnLoad={isSentOnLoad && problem === null && (target !== null || pools.length === 0)}
  >
    <input type="hidden" name="forceMethod" value={method} />
    {target && <input type="hidden" name="accountId" value={target.accountId} />}
    {poolId && <input type="hidden" name="egressPoolId" value={poolId} />}
    {target === null && pools.length > 0 && (
      <Select
        label="Outbound proxy"
        name="egressPoolId"
        options={[['', 'Default'], ...getOptions(pools)]}
        value=""
        hint="Used to sign in and for all later traffic of this account."
      />
    )}
    <div class="actions">
      <button class="button" type="submit" autofocus>
        {label}
      </button>
      <Leave label="Cancel" />
    </div>
  </StepForm>
)

export const AsTarget: FC<Pick<SignInProps, 'target'>> = ({ target }) =>
  target && (
    <p>
      Sign in as <strong>{target.displayName}</strong>. Any other account is rejected.
    </p>
  )

/** Closes the dialog, or goes to the accounts. */
export const Leave: FC<{ label: string; to?: string; isMain?: boolean }> = ({ label, to = '/accounts', isMain }) => (
  <ButtonLink isMain={isMain} href={to} data-action="close">
    {label}
  </ButtonLink>
)

/** Ends the sign-in; closing the dialog leaves it pending. */
export const Cancel: FC<{ flow: SignInValue }> = ({ flow }) => (
  <StepForm name="cancel" action="/api/oauth/cancel">
    <input type="hidden" name="flowId" value={flow.flowId} />
    <div class="actions">
      <Submit isPlain>Cancel</Submit>
    </div>
  </StepForm>
)

/** Polls every two seconds and changes only once there is a result. Without scripts a link does it. */
export const Waiting: FC<{ flow: SignInValue; text: string }> = ({ flow, text }) => {
  const path = getTabPath(flow.method)
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
            Expires in <Countdown at={flow.expiresAt} now={flow.generatedAt} />.
          </span>
        </span>
      </p>
      <noscript>
        <ButtonLink href={withQuery(path, { flow: flow.flowId })}>Check whether it worked</ButtonLink>
      </noscript>
    </>
  )
}
