/** The results of the command palette, also as a page. The script shows the dialog (views/assets/palette.js). */
import type { FC } from 'hono/jsx'

export interface Palette {
  q: string
  found: Hit[]
}

export interface Hit {
  /** "Account", "Setting" */
  kind: string
  label: string
  href: string
}

export const PalettePage: FC<Palette> = (palette) => (
  <div class="page page-narrow">
    <header class="page-head">
      <h1>Search</h1>
    </header>
    <form method="get" action="/search" class="card card-body">
      <input type="search" name="q" value={palette.q} maxlength={200} aria-label="Search Sluice" />
    </form>
    <section class="card palette-results" aria-label="Results">
      <PaletteResults {...palette} />
    </section>
  </div>
)

export const PaletteResults: FC<Palette> = ({ found }) =>
  found.length === 0 ? (
    <p class="palette-none muted">No results.</p>
  ) : (
    <ul>
      {found.map(({ kind, label, href }) => (
        <li>
          <a class="palette-hit" href={href}>
            <span>{label}</span>
            <span class="muted small">{kind}</span>
          </a>
        </li>
      ))}
    </ul>
  )
