/** Restores what the user typed into a rejected form, for browsers without scripts, where the error is a new page. */
import type { Ctx } from '../boot/bindings.ts'
import type { FormDraft } from './form-drafts.ts'
import { createMiddleware } from './handlers.ts'

/** The draft named by `?draft=`, if it belongs to this user. */
export const draftFor = (c: Ctx): FormDraft | null =>
  c.req.query('draft') === undefined ? null : c.env.formDrafts.get(c.req.query('draft'), c.get('principal')?.id)

/** Wraps every page; does nothing without a draft in the address. */
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

/** Visits the elements of a page in order. */
class Filler {
  readonly #draft: FormDraft
  /** Inside the form that was sent. */
  #isInside = false
  /** Values of the current select list. */
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

  /** Hidden fields belong to the page, and passwords are not kept. */
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

/** The parser returns attributes with their entities. */
const plain = (written: string | null): string =>
  (written ?? '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

const escaped = (text: string): string => text.replaceAll('&', '&amp;')
