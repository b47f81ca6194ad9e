/** My account, Time: time zone and hour format of pages. */
import type { FC } from 'hono/jsx'
import { Submit } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Field, Form } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { Moment, zoneName } from '../ui/time.tsx'

export interface ClockProps {
  /** null: the browser's zone is used. */
  chosenZone: string | null
  /** The server does not know the chosen zone. */
  isUnknown: boolean
  hours: 12 | 24
  /** Suggestions while typing. */
  zones: readonly string[]
}

export const ClockCard: FC<ClockProps & { now: string }> = ({ chosenZone, isUnknown, hours, zones, now }) => (
  <TextCard id="clock" title="Time">
    {isUnknown && (
      <p class="note note-bad" role="alert">
        There is no time zone “{chosenZone}”. Times are shown in {zoneName()} until you choose another one.
      </p>
    )}
    <p class="form-intro">
      Pages show times in {zoneName()}, where it is now <Moment at={now} />.
    </p>
    <Form name="clock" class="row-form" action="/api/dashboard-auth/clock">
      <Field
        label="Time zone"
        name="timeZone"
        value={chosenZone}
        placeholder="Same as this browser"
        autocomplete="off"
        maxlength={64}
        list="zones"
      />
      <Select
        label="Clock"
        name="hours"
        value={String(hours)}
        options={[
          ['24', '24 hours'],
          ['12', '12 hours'],
        ]}
      />
      <Submit>Save</Submit>
    </Form>
    <datalist id="zones">
      {zones.map((zone) => (
        <option value={zone} />
      ))}
    </datalist>
  </TextCard>
)
