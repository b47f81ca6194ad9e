/** The privacy eye: while its cookie is set, pages come with every e-mail address and name masked, so screenshots are safe. */
import { getCookie } from 'hono/cookie'
import type { Ctx } from '../boot/bindings.ts'
import { createMiddleware } from '../http/handlers.ts'
import { listPeople } from '../model/users/people.ts'

/** Wraps every page and fragment. JSON answers are not masked. */
export const privacyEye = createMiddleware(async (c, next) => {
  await next()
  if (getCookie(c, 'privacy') !== 'on' || !c.res.headers.get('content-type')?.startsWith('text/html')) return
  const masked = maskPage(await c.res.text(), await namesIn(c))
  const { status } = c.res
  const headers = new Headers(c.res.headers)
  headers.delete('content-length')
  c.res = undefined
  c.res = new Response(masked, { status, headers })
})

const namesIn = async (c: Ctx): Promise<string[]> => {
  const accounts = c.env.pool.all().map(({ displayName }) => displayName)
  const users = (await listPeople(c.env.db)).flatMap(({ row }) => [row.username, row.displayName ?? ''])
  return [...accounts, ...users].filter((name) => name.length > 1)
}

const EMAIL = /[^\s@<>"'&;(]+@[^\s@<>"'&;]+\.[a-z]{2,}/gi
/** Visible or spoken attributes. */
const SHOWN = / (?:title|aria-label|placeholder|data-confirm|hx-confirm)="[^"]*"/g

/** Masks text and visible attributes. Field values are sent back when saving, so they stay, and the field shows dots. */
export const maskPage = (html: string, names: readonly string[]): string => {
  const mask = getMask(names)
  let isRaw = false
  return html
    .split(/(<[^>]*>)/)
    .map((part) => {
      if (!part.startsWith('<')) return isRaw ? part : mask(part)
      if (/^<(script|textarea)\b/.test(part)) isRaw = true
      else if (/^<\/(script|textarea)>/.test(part)) isRaw = false
      const tag = part.replace(SHOWN, mask)
      if (!tag.startsWith('<input')) return tag
      const value = / value="([^"]*)"/.exec(tag)?.[1] ?? ''
      return mask(value) === value ? tag : tag.replace(/ type="(?:text|email|search)"/, ' type="password"')
    })
    .join('')
}

/** Longest names first, because one may contain another. Names are escaped like the page. */
const getMask = (names: readonly string[]): ((text: string) => string) => {
  const alternatives = [...new Set(names.map(escaped))]
    .toSorted((a, b) => b.length - a.length)
    .map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const known = alternatives.length === 0 ? null : new RegExp(`(?<![\\w-])(?:${alternatives.join('|')})(?![\\w-])`, 'g')
  const hide = (name: string) => `${[...name][0]}***`
  return (text) => {
    const withoutEmails = text.replace(EMAIL, (email) => `${hide(email)}@***`)
    return known ? withoutEmails.replace(known, hide) : withoutEmails
  }
}

const escaped = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
