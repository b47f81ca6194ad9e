/** How fresh the tokens of an account are, and exporting them for another program. */
import type { FC } from 'hono/jsx'
import type { TokenHealth } from '../../src/model/accounts/account-export.ts'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { DisabledButton } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Fact } from '../ui/fact.tsx'
import { Action } from '../ui/form.tsx'
import { Since, Until } from '../ui/time.tsx'

export interface CredentialsProps {
  tokens: TokenHealth
  /** ChatGPT's workspace id; null: unknown. */
  chatgptAccountId: string | null
  /** ISO 8601 */
  addedAt: string
  /** Why they can't be exported; null: they can. */
  exportRefusal: string | null
}

type Props = CredentialsProps & { account: WireAccount; now: string }

export const CredentialsTab: FC<Props> = (props) => (
  <>
    <Health {...props} />
    <Export {...props} />
  </>
)

const Health: FC<Props> = ({ tokens, chatgptAccountId, addedAt, now }) => (
  <Card id="tokens" title="Tokens">
    <dl class="answers">
      <Fact name="Last refreshed">
        <Since at={tokens.lastRefreshAt} now={now} />
      </Fact>
      <Fact name="Next refresh">
        <NextRefresh tokens={tokens} now={now} />
      </Fact>
      <Fact name="Access token">
        <TokenState token={tokens.access} now={now} />
      </Fact>
      <Fact name="Refresh token">
        <TokenState token={tokens.refresh} now={now} />
      </Fact>
      <Fact name="Added">
        <Since at={addedAt} now={now} />
      </Fact>
      <Fact name="ChatGPT account ID">
        {chatgptAccountId ? <code>{chatgptAccountId}</code> : <span class="muted">none</span>}
      </Fact>
    </dl>
  </Card>
)

const NextRefresh: FC<Pick<Props, 'tokens' | 'now'>> = ({ tokens, now }) => {
  if (tokens.nextRefreshAt === null) return <>none: sign in again first</>
  return tokens.nextRefreshAt <= now ? (
    <>at the next request</>
  ) : (
    <>
      <Until at={tokens.nextRefreshAt} now={now} />, or as soon as ChatGPT rejects the token
    </>
  )
}

const STATES: Record<TokenHealth['access']['state'], [label: string, tone: Tone]> = {
  valid: ['Valid', 'good'],
  expired: ['Expired', 'bad'],
  unknown: ['Stored', 'idle'],
}

const TokenState: FC<{ token: TokenHealth['access']; now: string }> = ({ token, now }) => {
  const [label, tone] = STATES[token.state]
  return (
    <Badge tone={tone}>
      <span>
        {label}
        {token.state === 'unknown' && <span class="muted"> · no expiry date</span>}
        {token.expiresAt && token.state === 'valid' && (
          <span class="muted">
            {' · expires '}
            <Until at={token.expiresAt} now={now} />
          </span>
        )}
      </span>
    </Badge>
  )
}

const Export: FC<Props> = ({ account, exportRefusal }) => (
  <TextCard id="export" title="Export">
    <p>
      Anyone with these credentials can use the account. A refresh token works only once: if another program uses it,
      the copy in Sluice stops working. Pause or delete the account here if you move it.
    </p>
    <div class="actions">
      <ExportButton account={account} format="codex" label="Export for Codex" refusal={exportRefusal} />
      <ExportButton account={account} format="opencode" label="Export for OpenCode" refusal={exportRefusal} />
      {exportRefusal && <span class="muted small">{exportRefusal}</span>}
    </div>
  </TextCard>
)

interface ButtonProps {
  account: WireAccount
  format: 'codex' | 'opencode'
  label: string
  refusal: string | null
}

const ExportButton: FC<ButtonProps> = ({ account, format, label, refusal }) =>
  refusal ? (
    <DisabledButton label={label} why={refusal} />
  ) : (
    <Action
      name={`export-${format}`}
      action={`/api/accounts/${encodeURIComponent(account.accountId)}/export/auth`}
      target="#dialog"
      values={{ format }}
      label={label}
    />
  )
