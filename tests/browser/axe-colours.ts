/** Finds information given only by color, without a text, a named picture or a shape. */
import type { Page } from 'playwright-core'

/** What takes the colour of a state, and bars and strips, whose colour says how full or how well. */
const COLOURED = '[class*="tone-"], svg.bar, progress, svg.outcomes, svg.timing-bar, .swatch, .dot'

/** The elements whose colour is all they say; the same words in two colours are such, too. */
export const findColorOnlyInformation = (page: Page): Promise<string[]> =>
  page.evaluate((coloured) => {
    const found: string[] = []
    const tones = new Map<string, string>()
    const getWords = (el: Element): string => {
      const own = el.getAttribute('aria-label') ?? el.querySelector('title')?.textContent ?? ''
      return (own || (el instanceof HTMLElement ? el.textContent : '')).trim()
    }
    for (const el of document.querySelectorAll(coloured)) {
      if (!el.checkVisibility()) continue
      // Hidden content repeats the words beside it.
      const isRepeated = el.closest('[aria-hidden="true"]') !== null
      const words = getWords(isRepeated ? (el.closest('[aria-hidden="true"]')?.parentElement ?? el) : el)
      const tone = /tone-\w+/.exec(el.getAttribute('class') ?? '')?.[0]
      if (words === '') found.push(el.outerHTML.slice(0, 120))
      if (!tone) continue
      const kind = `${el.className.replace(tone, '').trim()}: ${words.split('\n')[0]}`
      if ((tones.get(kind) ?? tone) !== tone) found.push(`${kind} in two colours`)
      tones.set(kind, tone)
    }
    return found
  }, COLOURED)

/**
 * Which of several is the current one, and which switch is on, when the system sets the colors. Returns the elements
 * that look like their neighbors, and switches without a visible knob.
 */
export const findLostInForcedColors = async (page: Page): Promise<string[]> => {
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
  const lost = await page.evaluate(() => {
    const getLooks = (el: Element, part?: string) => {
      const { backgroundColor, borderColor } = getComputedStyle(el, part)
      // A ground that is forced and one that is not there are the same to look at.
      return `${backgroundColor} ${borderColor}`.replaceAll(/rgba\((.*?), [\d.]+\)/g, 'rgb($1)')
    }
    const CURRENT = 'nav a[aria-current], .client-tab:has(:checked)'
    const current = [...document.querySelectorAll(CURRENT)].filter((el) => el.checkVisibility())
    const alike = current.filter((el) => {
      const all = el.closest('nav, fieldset')?.querySelectorAll(el.matches('a') ? 'a' : '.client-tab') ?? []
      const other = [...all].find((one) => one !== el && one.checkVisibility())
      return other !== undefined && getLooks(other) === getLooks(el)
    })
    const knobless = [...document.querySelectorAll('.switch')].filter(
      (el) => getComputedStyle(el).backgroundColor === getComputedStyle(el, '::before').backgroundColor,
    )
    return [...alike, ...knobless].map((el) => el.outerHTML.slice(0, 120))
  })
  await page.emulateMedia({ forcedColors: 'none' })
  return lost
}
