/** Shares of the pool: the use of a user's share, and the form for the share of a user or role. */
import type { FC } from 'hono/jsx'
import type { ShareUse } from '../../src/model/shares/shares.ts'
import { Submit } from '../ui/button.tsx'
import { Field, Form } from '../ui/form.tsx'
import { Bar } from '../ui/meter.tsx'

const NAMES: Record<ShareUse['window'], string> = { five_hour: '5 hours', weekly: '7 days' }

/** A bar per window, for the user's own page. */
export const ShareMeters: FC<{ uses: readonly ShareUse[] }> = ({ uses }) => (
  <>
    {uses.map((use) => (
      <div class="meter muted">
        <span>{NAMES[use.window]}</span>
        <Bar label={`Share, ${NAMES[use.window]}`} used={getUsedPercent(use)} />
        <span class="meter-text">
          <b>
            {tenths(use.used)}% of {use.share}%
          </b>
          {movesText(use)}
        </span>
      </div>
    ))}
  </>
)

/** The use of a share in one line, for lists. */
export const ShareLine: FC<{ uses: readonly ShareUse[] }> = ({ uses }) =>
  uses.length === 0 ? null : (
    <span class="small">
      Share of the pool:{' '}
      {uses.map((use) => `${tenths(use.used)}% of ${use.share}% in ${NAMES[use.window]}${movesText(use)}`).join('; ')}
    </span>
  )

const getUsedPercent = ({ used, share }: ShareUse): number =>
  share === 0 ? (used > 0 ? 100 : 0) : (used / share) * 100

const tenths = (percent: number): number => Math.round(percent * 10) / 10

const movesText = ({ borrowed, lent }: ShareUse): string =>
  `${borrowed > 0 ? ` · ${tenths(borrowed)}% borrowed` : ''}${lent > 0 ? ` · ${tenths(lent)}% lent` : ''}`

interface ShareFormProps {
  name: string
  /** The name of the user or role, for screen readers. */
  of: string
  action: string
  share: { fiveHourPercent: number | null; weeklyPercent: number | null } | null
  hint: string
}

export const ShareForm: FC<ShareFormProps> = ({ name, of, action, share, hint }) => (
  <Form name={name} class="row-form share-form" method="patch" action={action}>
    <p class="form-intro">{hint}</p>
    <PercentField label="Share of 5 hours, %" name="share.fiveHourPercent" value={share?.fiveHourPercent ?? null} />
    <PercentField label="Share of 7 days, %" name="share.weeklyPercent" value={share?.weeklyPercent ?? null} />
    <Submit>
      Set share<span class="sr"> of {of}</span>
    </Submit>
  </Form>
)

const PercentField: FC<{ label: string; name: string; value: number | null }> = ({ label, name, value }) => (
  <Field
    label={label}
    name={name}
    type="number"
    min={0}
    max={100}
    step="any"
    value={value === null ? '' : String(value)}
  />
)
