/** How a sign-in ended: with an account, by somebody's wish, or in an error. */
import type { FC } from 'hono/jsx'
import type { SignInValue } from '../../src/admin/sign-in-value.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Problem } from '../ui/form.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import { accountPath } from './links.ts'
import { Begin, Frame, Leave, titleOf } from './new-frame.tsx'

/** A sign-in that is over: the account, or why there is none and the way to begin again. */
export const Ended: FC<{ flow: SignInValue }> = ({ flow }) => {
  if (flow.status === 'success') return <Succeeded flow={flow} />
  return flow.isCancelled ? <Cancelled flow={flow} /> : <Failed flow={flow} />
}

const Succeeded: FC<{ flow: SignInValue }> = ({ flow: { account, target, isPaused } }) => (
  <Frame title={target ? 'Signed in again' : 'The account was added'} isChange>
    <p class="done" role="status">
      <CheckIcon />
      <span>
        <strong>{account?.displayName ?? 'The account'}</strong>{' '}
        {isPaused
          ? 'has new credentials. It is paused, and serves once somebody resumes it.'
          : 'serves from now on; its usage and models are being fetched.'}
      </span>
    </p>
    <div class="actions">
      <Leave label="Done" isMain to={account ? accountPath(account.accountId) : undefined} />
      {!target && <ButtonLink href="/accounts/new">Add another</ButtonLink>}
    </div>
  </Frame>
)

const Cancelled: FC<{ flow: SignInValue }> = ({ flow: { method, target } }) => (
  <Frame title={titleOf(target, 'The sign-in was cancelled')}>
    <p role="status">
      Nothing was changed. {method === 'device' ? 'The code' : 'The address'} you were given opens nothing here any
      more.
    </p>
    <Begin method={method} label="Begin again" target={target} problem={null}>
      <Leave label="Close" />
    </Begin>
  </Frame>
)

const Failed: FC<{ flow: SignInValue }> = ({ flow: { method, errorMessage, target } }) => (
  <Frame title={titleOf(target, 'That did not work')}>
    <Problem text={errorMessage ?? 'The sign-in has ended.'} />
    <Begin method={method} label="Begin again" target={target} problem={null} />
  </Frame>
)
