/** Finds what does not fit a narrow window: horizontal scrolling, truncated texts, and tiny letters. */
import type { Page } from 'playwright-core'

/** CSS pixels; the smallest words are those below the icons of the navigation. */
const SMALLEST_LETTERS = 11

/** Each in a few words; none if everything is readable. Scrollable content may be wider than the window. */
export const narrowProblems = (page: Page): Promise<string[]> =>
  page.evaluate((smallest) => {
    const { scrollingElement } = document
    const isWide = scrollingElement!.scrollWidth > innerWidth // a page with a body scrolls
    const problems = new Set(isWide ? [`the page is ${scrollingElement!.scrollWidth} wide`] : [])

    /** There for those who listen, not for those who look. */
    const isClipped = (el: Element | null): boolean =>
      el !== null && (getComputedStyle(el).clipPath !== 'none' || isClipped(el.parentElement))
    const isHidden = (el: Element) =>
      !el.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ||
      el.closest('svg, select, option, datalist, script, style, noscript') !== null ||
      isClipped(el)
    /** Left and right end of the visible part of `el`; null if it can be scrolled there. */
    const window = { left: 0, right: innerWidth }
    const getFrame = (el: Element): { left: number; right: number } | null => {
      for (let at: Element | null = el; at; at = at.parentElement) {
        const { overflowX, position } = getComputedStyle(at)
        if (overflowX === 'auto' || overflowX === 'scroll') return at === scrollingElement ? window : null
        if (overflowX === 'hidden' || overflowX === 'clip') {
          const { left, right } = at.getBoundingClientRect()
          return { left: Math.max(left, 0), right: Math.min(right, innerWidth) }
        }
        if (position === 'fixed') break
      }
      return window
    }
    const texts = document.createTreeWalker(
      document.querySelector('dialog[open]') ?? document.body,
      NodeFilter.SHOW_TEXT,
    )
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const el = node.parentElement
      const text = node.textContent?.trim()
      if (!el || !text || isHidden(el)) continue
      const label = `${el.closest('[class]')?.className || el.tagName}: ${text.slice(0, 60)}`
      if (Number.parseFloat(getComputedStyle(el).fontSize) < smallest) problems.add(`too small: ${label}`)
      const frame = getFrame(el)
      if (frame === null) continue
      const range = document.createRange()
      range.selectNodeContents(node)
      for (const { left, right } of range.getClientRects())
        if (left < frame.left - 1 || right > frame.right + 1) problems.add(`cut off: ${label}`)
    }
    return [...problems]
  }, SMALLEST_LETTERS)
