/** The user guides: the list of them, and each with its sections beside it. */
import { raw } from 'hono/html'
import type { FC } from 'hono/jsx'
import type { Rendered } from '../../src/lib/markdown.ts'
import type { Titled } from '../titles.ts'

export interface GuideEntry {
  slug: string
  title: string
  about: string
}

export interface Guide extends Rendered {
  slug: string
  guides: readonly GuideEntry[]
}

export const GuidesPage: FC<{ guides: readonly GuideEntry[] }> = ({ guides }) => (
  <div class="page">
    <header class="page-head">
      <h1>Docs</h1>
    </header>
    <ul class="guides">
      {guides.map(({ slug, title, about }) => (
        <li class="card">
          <a href={`/docs/${slug}`}>{title}</a>
          <p>{about}</p>
        </li>
      ))}
      <li class="card">
        <a href="/docs/api">API reference</a>
        <p>Every route with its fields, errors and an example for your address.</p>
      </li>
    </ul>
  </div>
)

export const GuidePage: Titled<Guide> = ({ slug, title, html, sections, guides }) => (
  <div class="page guide-page">
    <header class="page-head">
      <h1>{title}</h1>
    </header>
    <nav class="guide-nav" aria-label="Guides">
      <ul>
        {guides.map((one) => (
          <li>
            <a href={`/docs/${one.slug}`} aria-current={one.slug === slug ? 'page' : undefined}>
              {one.title}
            </a>
            {one.slug === slug && (
              <ul>
                {sections.map((section) => (
                  <li>
                    <a href={`#${section.id}`}>{section.title}</a>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
        <li>
          <a href="/docs/api">API reference</a>
        </li>
      </ul>
    </nav>
    <article class="guide">{raw(html)}</article>
  </div>
)

GuidePage.title = ({ title }) => title
