/** How a sign-in ended: with an account, cancelled, or with an error. */
import type { FC } from 'hono/jsx'
import { ButtonLink } from '../ui/button.tsx'
import { Problem } from '../ui/form.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import { accountPath } from './links.ts'
import { AddFrame, Begin, Frame, getTabPath, Leave, type SignInValue } from './new-frame.tsx'

export const Ended: FC<{ flow: SignInValue }> = ({ flow }) =>
  flow.status === 'success' ? <Succeeded flow={flow} /> : <Failed flow={flow} />

const Succeeded: FC<{ flow: SignInValue }> = ({ flow: { account, method, target, isPaused } }) => (
  <Frame title={target ? 'Signed in again' : 'Account added'} isChange>
    <p class="done" role="status">
      <CheckIcon />
      <span>
        <strong>{account?.displayName ?? 'The account'}</strong>{' '}
        {isPaused
          ? 'has new credentials. It is still paused: resume it to use it.'
          : 'is ready. Its usage and models are being fetched.'}
      </span>
    </p>
    <div class="actions">
      <Leave label="Done" isMain to={account ? accountPath(account.accountId) : undefined} />
      {!target && <ButtonLink href={getTabPath(method)}>Add another</ButtonLink>}
    </div>
  </Frame>
)

/** Cancelled or failed: nothing has changed, and the same tab starts again. */
const Failed: FC<{ flow: SignInValue }> = ({ flow: { method, errorMessage, isCancelled, target, egressPoolId } }) => (
  <AddFrame way={method} target={target}>
    {isCancelled ? (
      <p role="status">Sign-in cancelled. Nothing was changed.</p>
    ) : (
      <Problem text={errorMessage ?? 'The sign-in has ended.'} />
    )}
    <Begin method={method} label="Start again" target={target} pools={[]} poolId={egressPoolId} problem={null} />
  </AddFrame>
)
