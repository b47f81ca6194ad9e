/** Parameters of the URL that a page does not have: a filter with a typing error would otherwise look as if it matched everything. */
import type { FC } from 'hono/jsx'

const MOST_SHOWN = 5
const MOST_NAME_CHARS = 40

/** `page`: what has no such filter. */
export const UnknownParameters: FC<{ unknown: readonly string[]; page: string }> = ({ unknown, page }) =>
  unknown.length === 0 ? null : (
    <p class="notice" role="alert">
      Not applied:{' '}
      {unknown.slice(0, MOST_SHOWN).map((name, index) => (
        <>
          {index > 0 && ', '}
          <code>{name.slice(0, MOST_NAME_CHARS)}</code>
        </>
      ))}
      . {page} has no {unknown.length === 1 ? 'such filter' : 'such filters'}.
    </p>
  )
