/** Parameters of the URL that a page does not have: a filter with a typing error would otherwise look as if it matched everything. */
import type { FC } from 'hono/jsx'

const MAX_SHOWN = 5
const MAX_CHARS = 40

/** `unknown`: names, or `name=value`. */
export const UnknownParameters: FC<{ unknown: readonly string[] }> = ({ unknown }) =>
  unknown.length === 0 ? null : (
    <p class="not-applied" role="alert">
      Not applied, because this page has no such parameter or value:{' '}
      {unknown.slice(0, MAX_SHOWN).map((item, index) => (
        <>
          {index > 0 && ', '}
          <code>{item.slice(0, MAX_CHARS)}</code>
        </>
      ))}
      .
    </p>
  )
