/** Renders this repository's Markdown as HTML: headings get ids, and wide tables and code scroll on their own. */

export interface Section {
  id: string
  title: string
}

export interface Rendered {
  title: string
  html: string
  /** The second-level headings, in order. */
  sections: Section[]
}

/**
 * Renders `text`. `linkTo` maps each link target; the first heading becomes `title` and is left out of `html`. The text
 * is our own, but HTML in it is still escaped.
 */
export const renderMarkdown = (text: string, linkTo: (href: string) => string): Rendered => {
  const whole = Bun.markdown.html(text, { headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true })
  const [, title = ''] = /<h1[^>]*>(.*?)<\/h1>/s.exec(whole) ?? []
  const sections = [...whole.matchAll(/<h2 id="([^"]*)">(.*?)<\/h2>/gs)].map(([, id = '', inner = '']) => ({
    id,
    title: plain(inner),
  }))
  const html = new HTMLRewriter()
    .on('h1', { element: (heading) => void heading.remove() })
    .on('a[href]', {
      element: (link) => void link.setAttribute('href', linkTo(link.getAttribute('href') ?? '')),
    })
    .on('table', {
      element: (table) => {
        table.before('<div class="guide-table" tabindex="0" role="group" aria-label="Table">', { html: true })
        table.after('</div>', { html: true })
      },
    })
    // Long names in narrow columns break after an underscore, not in the middle of a word.
    .on('td > code', { text: (chunk) => void chunk.replace(chunk.text.replaceAll('_', '_<wbr>'), { html: true }) })
    .on('pre', { element: (block) => void block.setAttribute('tabindex', '0') })
    .transform(whole)
  return { title: plain(title), html, sections }
}

const ENTITIES: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' }

const plain = (html: string): string =>
  html.replaceAll(/<[^>]*>/g, '').replaceAll(/&(?:amp|lt|gt|quot);/g, (entity) => ENTITIES[entity] ?? entity)
