/** Links to other pages of a list: by number, or older and newer without a count. */
import type { FC, PropsWithChildren } from 'hono/jsx'

interface NumberedProps {
  page: number
  pages: number
  /** The URL of a page. */
  at: (page: number) => string
}

export const NumberedPager: FC<PropsWithChildren<NumberedProps>> = ({ page, pages, at, children }) => (
  <nav class="pager" aria-label="Pages">
    {page > 1 && (
      <a href={at(page - 1)} rel="prev">
        Previous
      </a>
    )}
    <span class="muted">
      Page {page} of {pages}
    </span>
    {page < pages && (
      <a href={at(page + 1)} rel="next">
        Next
      </a>
    )}
    {children}
  </nav>
)

interface AgeProps {
  /** null: this is the newest page. */
  newest: string | null
  /** null: no older ones. */
  older: string | null
}

export const AgePager: FC<AgeProps> = ({ newest, older }) =>
  newest === null && older === null ? null : (
    <nav class="pager" aria-label="Pages">
      {newest && <a href={newest}>Newest</a>}
      {older && (
        <a href={older} rel="next">
          Older
        </a>
      )}
    </nav>
  )
