/** Reset credits of an account. Each resets its limits immediately and can be used once before it expires. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import type { ResetCreditsView } from '../../src/model/accounts/reset-credits.ts'
import { DisabledButton } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action } from '../ui/form.tsx'
import { Until } from '../ui/time.tsx'
import { ResetRulePart, type ResetRuleProps } from './reset-rule.tsx'

interface Props {
  account: WireAccount
  resetCredits: ResetCreditsView | null
  resetRefusal: string | null
  redeemRequestId: string
  resetRule: ResetRuleProps
  now: string
}

export const ResetCreditsCard: FC<Props> = (props) => {
  const { resetCredits, now } = props
  return (
    <Card id="reset-credits" title="Reset credits" count={resetCredits?.availableCount}>
      {resetCredits && resetCredits.credits.length > 0 && (
        <ul class="rows">
          {resetCredits.credits.map((credit) => (
            <li class="row">
              <span class="row-main">
                <strong>{credit.title ?? 'Reset'}</strong>{' '}
                <span class="muted small">{credit.description ?? credit.resetType}</span>
              </span>
              <span class="muted small">
                {credit.status === 'available' ? (
                  credit.expiresAt ? (
                    <>
                      expires <Until at={credit.expiresAt} now={now} />
                    </>
                  ) : (
                    'never expires'
                  )
                ) : (
                  credit.status
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      <div class="card-body">
        <Use {...props} />
        <ResetRulePart {...props.resetRule} account={props.account} />
      </div>
    </Card>
  )
}

const USE = 'Use a reset credit'

const Use: FC<Props> = ({ account, resetCredits, resetRefusal, redeemRequestId }) => {
  if (resetRefusal !== null)
    return (
      <div class="actions">
        {(resetCredits?.availableCount ?? 0) > 0 && <DisabledButton label={USE} why={resetRefusal} />}
        <span class="muted small">{resetRefusal}</span>
      </div>
    )
  return (
    <Action
      name="reset-credit"
      action={`/api/accounts/${encodeURIComponent(account.accountId)}/rate-limit-reset-credits/consume`}
      confirm={`Use a reset credit of ${account.displayName}? The one that expires first is used, and this can’t be undone.`}
      values={{ redeemRequestId }}
      label={USE}
    />
  )
}
