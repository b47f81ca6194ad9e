/** What the choice of an account goes by: its policy, its name, the restricted pool, and limits that hold for all. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/account-view.ts'
import { Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Fact } from '../ui/fact.tsx'
import { Check, Field, Form } from '../ui/form.tsx'

export interface RoutingProps {
  strategy: string
  /** Turns one account may carry at once; 0: no limit. */
  streamLimit: number
  /** Slugs, sorted; null: the upstream was not asked yet. */
  models: readonly string[] | null
  /** Why nothing can be changed; null: it can. */
  refusal: string | null
}

const POLICIES: readonly [WireAccount['routingPolicy'], label: string, hint: string][] = [
  ['burn_first', 'Use first', 'Asked before the others, until it is used up.'],
  ['normal', 'Normal', 'The strategy decides.'],
  ['preserve', 'Keep back', 'Asked only when no other account can serve.'],
]

export const RoutingTab: FC<RoutingProps & { account: WireAccount }> = (props) => (
  <>
    <TextCard id="routing" title="Routing of this account">
      <RoutingForm {...props} />
    </TextCard>
    <Circumstances {...props} />
  </>
)

const RoutingForm: FC<RoutingProps & { account: WireAccount }> = ({ account, refusal }) => (
  <Form name="routing" class="stack" method="patch" action={`/api/accounts/${encodeURIComponent(account.accountId)}`}>
    <fieldset class="stack" disabled={refusal !== null}>
      <input type="hidden" name="expectedVersion" value={account.version} />
      <Field
        label="Alias"
        name="alias"
        value={account.alias}
        maxlength={255}
        class="field-short"
        hint="Shown instead of the e-mail address; empty: none."
      />
      <fieldset class="choices">
        <legend class="field-label">Routing policy</legend>
        {POLICIES.map(([value, label, hint]) => (
          <label class="check">
            <input type="radio" name="routingPolicy" value={value} checked={account.routingPolicy === value} />
            <span>
              {label}
              <span class="hint">{hint}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <Check
        label="Restricted pool"
        name="securityWorkAuthorized"
        isOn={account.securityWorkAuthorized}
        hint="May serve turns that demand an account authorised for security work. Such turns never go anywhere else."
      />
      {refusal === null ? (
        <div class="actions">
          <Submit>Save</Submit>
        </div>
      ) : (
        <p class="muted small">{refusal}</p>
      )}
    </fieldset>
  </Form>
)

const Circumstances: FC<RoutingProps & { account: WireAccount }> = ({ account, strategy, streamLimit, models }) => (
  <Card id="circumstances" title="What else decides">
    <dl class="answers">
      <Fact name="Strategy">
        {strategy.replaceAll('_', ' ')} <span class="muted">· for all accounts</span>
      </Fact>
      <Fact name="Turns at once">
        {account.inFlight} now, {streamLimit === 0 ? 'without a limit' : `at most ${streamLimit}`}{' '}
        <span class="muted">· for each account</span>
      </Fact>
      <Fact name="Health">{TIERS[account.tier]}</Fact>
      <Fact name="Models">
        {models === null ? (
          <span class="muted">not known yet</span>
        ) : models.length === 0 ? (
          <span class="muted">it offers none</span>
        ) : (
          <ul class="model-list">
            {models.map((model) => (
              <li>
                <code>{model}</code>
              </li>
            ))}
          </ul>
        )}
      </Fact>
    </dl>
  </Card>
)

const TIERS: Record<WireAccount['tier'], string> = {
  healthy: 'healthy',
  draining: 'draining: nearly full or failing lately, so it is asked last',
  probing: 'coming back: one turn at a time until it has served three',
}
