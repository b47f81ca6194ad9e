/** Table headings: text columns first, then numbers, and sortable ones. */
import type { FC, PropsWithChildren } from 'hono/jsx'

interface HeadProps {
  texts: readonly string[]
  numbers?: readonly string[]
}

export const TableHead: FC<PropsWithChildren<HeadProps>> = ({ texts, numbers = [], children }) => (
  <thead>
    <tr>
      {texts.map((name) => (
        <th scope="col">{name}</th>
      ))}
      {numbers.map((name) => (
        <th scope="col" class="number">
          {name}
        </th>
      ))}
      {children}
    </tr>
  </thead>
)

interface SortHeadingProps {
  label: string
  /** The list sorted by this column, or reversed. */
  href: string
  /** Current order by this column; null: sorted by another. */
  order: 'asc' | 'desc' | null
  isNumber?: boolean
}

const SPOKEN = { asc: 'ascending', desc: 'descending' } as const

export const SortHeading: FC<SortHeadingProps> = ({ label, href, order, isNumber = false }) => (
  <th scope="col" class={isNumber ? 'number' : undefined} aria-sort={order ? SPOKEN[order] : undefined}>
    <a class="sort" href={href}>
      {label}
      {order && <span aria-hidden="true">{order === 'asc' ? ' ↑' : ' ↓'}</span>}
    </a>
  </th>
)

/** The values of the picture above as a table. Focusable, so that keys can scroll it. */
export const AsTable: FC<PropsWithChildren> = ({ children }) => (
  <details class="as-table">
    <summary class="reveal">As a table</summary>
    <div class="scroll-x" tabindex={0}>
      {children}
    </div>
  </details>
)
