/** The few line icons of the dashboard: 16 units square, drawn in the colour of the text, hidden from screen readers. */
import type { FC, PropsWithChildren } from 'hono/jsx'

const Line: FC<PropsWithChildren> = ({ children }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    {children}
  </svg>
)

/** Strokes only, without round or filled shapes. */
const icon =
  (path: string): FC =>
  () => (
    <Line>
      <path d={path} />
    </Line>
  )

const EYE = 'M1.5 8q6.5-8 13 0q-6.5 8-13 0M8 6.5a1.5 1.5 0 1 0 .1 0'
export const EyeIcon = icon(EYE)
export const EyeOffIcon = icon(`${EYE}M2.5 13.5l11-11`)

export const BellIcon = icon('M3 12h10l-1.5-2V6.5a3.5 3.5 0 0 0-7 0V10zM6.5 14h3')

export const SearchIcon = icon('M2.5 7a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0M10.3 10.3l3.5 3.5')

export const LockIcon = icon('M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5')

/** The mark: a gate half raised over moving water. */
export const Mark: FC = () => (
  <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
    <path class="mark-posts" d="M4 3v18M20 3v18" />
    <path class="mark-gate" d="M7.5 4.5h9v6h-9z" />
    <path
      class="mark-water"
      d="M6.5 15c1.4-1.3 2.8-1.3 4.1 0s2.8 1.3 4.1 0 2.1-1.2 2.8-.7M6.5 19c1.4-1.3 2.8-1.3 4.1 0s2.8 1.3 4.1 0 2.1-1.2 2.8-.7"
    />
  </svg>
)

export const GaugeIcon = icon('M2 11.5a6 6 0 1 1 12 0M8 11.5l2.6-3.6')
export const CheckIcon = icon('m3.5 8.5 3 3 6-7')

export const ClockIcon: FC = () => (
  <Line>
    <circle cx="8" cy="8" r="5.75" />
    <path d="M8 4.75V8l2.25 1.5" />
  </Line>
)

export const CrossIcon = icon('m4.5 4.5 7 7M11.5 4.5l-7 7')
export const LeaveIcon = icon('M9.5 3.5H4v9h5.5M7.5 8H14m-2.5-2.5L14 8l-2.5 2.5')
export const WarningIcon = icon('M8 2.5 14.25 13H1.75zM8 6.5v3M8 11.4v.1')

export const ThemeIcon: FC = () => (
  <Line>
    <circle cx="8" cy="8" r="5.75" />
    <path class="icon-solid" d="M8 2.25a5.75 5.75 0 0 1 0 11.5z" />
  </Line>
)

export const CopyIcon = icon('M5.5 5.5h7v7h-7zM3.5 10.5v-7h7')

export const GearIcon: FC = () => (
  <Line>
    <path d="M2.5 5h5m4 0h2M2.5 11h2m4 0h5" />
    <circle cx="9.5" cy="5" r="1.75" />
    <circle cx="6.5" cy="11" r="1.75" />
  </Line>
)

export const KeyIcon: FC = () => (
  <Line>
    <circle cx="5.5" cy="10.5" r="3" />
    <path d="m7.7 8.3 5.3-5.3m-2.2 2.2 2 2" />
  </Line>
)

export const PersonIcon: FC = () => (
  <Line>
    <circle cx="8" cy="5.5" r="2.75" />
    <path d="M2.75 13.5c.6-2.6 2.6-4 5.25-4s4.65 1.4 5.25 4" />
  </Line>
)

/** The accounts: several, one behind the other. */
export const StackIcon = icon('m8 2.25 6 3-6 3-6-3zM2 8.25l6 3 6-3M2 11.25l6 3 6-3')

/** The log: one line after another. */
export const ListIcon = icon('M2.5 4h.01M2.5 8h.01M2.5 12h.01M5.5 4h8M5.5 8h8M5.5 12h8')
export const ChartIcon = icon('M2.5 13.5h11M4.5 11V8M8 11V3.5M11.5 11V6')
export const PulseIcon = icon('M1.75 8.5h3L6.5 4l3 8.5 1.75-4h3')

export const HelpIcon: FC = () => (
  <Line>
    <circle cx="8" cy="8" r="5.75" />
    <path d="M6.25 6.5c.1-1 .8-1.5 1.8-1.5s1.7.6 1.7 1.5c0 1.2-1.7 1.2-1.7 2.5M8.05 10.9v.1" />
  </Line>
)
