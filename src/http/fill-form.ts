/** Puts what was typed back into the form of a page: for browsers without script, where a refusal is a new page. */
import type { Ctx } from '../bindings.ts'
import type { FormDraft } from './form-drafts.ts'
import { createMiddleware } from './handlers.ts'

/** The draft that `?draft=` names, when it is the caller's own. */
export const draftFor = (c: Ctx): FormDraft | null =>
  c.req.query('draft') === undefined ? null : c.env.formDrafts.get(c.req.query('draft'), c.get('principal')?.id)

/** Around every page: without a draft in its address it leaves the page alone. */
export const refillForm = createMiddleware(async (c, next) => {
  await next()
  const draft = c.req.method === 'GET' && c.res.ok ? draftFor(c) : null
  if (draft && c.res.headers.get('content-type')?.startsWith('text/html')) c.res = fill(c.res, draft)
})

const fill = (page: Response, draft: FormDraft): Response => {
  const filler = new Filler(draft)
  return new HTMLRewriter()
    .on('form', { element: (el) => filler.form(el) })
    .on('input', { element: (el) => filler.input(el) })
    .on('select', { element: (el) => filler.select(el) })
    .on('option', { element: (el) => filler.option(el) })
    .on('textarea', { element: (el) => filler.textarea(el) })
    .transform(page)
}

type El = HTMLRewriterTypes.Element

/** Meets the elements of a page in their order. */
class Filler {
  readonly #draft: FormDraft
  /** In the form that was sent. */
  #isInside = false
  /** Of the list whose options are met. */
  #chosen: readonly string[] | undefined

  constructor(draft: FormDraft) {
    this.#draft = draft
  }

  form(el: El): void {
    this.#isInside = plain(el.getAttribute('action')) === this.#draft.action
    el.onEndTag(() => {
      this.#isInside = false
    })
  }

  /** What is hidden is the page's own; a password is typed again. */
  input(el: El): void {
    const typed = this.#typedInto(el)
    const type = el.getAttribute('type') ?? 'text'
    if (typed === undefined || type === 'hidden' || type === 'password') return
    if (type === 'checkbox' || type === 'radio')
      setFlag(el, 'checked', typed.includes(plain(el.getAttribute('value') ?? 'on')))
    else el.setAttribute('value', escaped(typed.at(-1) ?? ''))
  }

  select(el: El): void {
    this.#chosen = this.#typedInto(el)
    el.onEndTag(() => {
      this.#chosen = undefined
    })
  }

  option(el: El): void {
    if (this.#chosen) setFlag(el, 'selected', this.#chosen.includes(plain(el.getAttribute('value'))))
  }

  textarea(el: El): void {
    const typed = this.#typedInto(el)
    if (typed) el.setInnerContent(typed.at(-1) ?? '')
  }

  #typedInto(el: El): readonly string[] | undefined {
    if (!this.#isInside) return undefined
    const name = plain(el.getAttribute('name'))
    if (this.#draft.refused.includes(name)) el.setAttribute('aria-invalid', 'true')
    return this.#draft.values.get(name)
  }
}

const setFlag = (el: El, name: 'checked' | 'selected', isOn: boolean): void => {
  if (isOn) el.setAttribute(name, '')
  else el.removeAttribute(name)
}

/** The parser hands attributes on as they are written. */
const plain = (written: string | null): string =>
  (written ?? '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

const escaped = (text: string): string => text.replaceAll('&', '&amp;')
