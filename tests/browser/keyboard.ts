/** Helpers for keyboard tests: moving the focus, and whether it is visible. */
import { expect } from 'bun:test'
import type { Locator, Page } from 'playwright-core'

/** More tab stops than any of our pages has before the main content. */
const PATIENCE = 150

export const isFocused = (target: Locator): Promise<boolean> => target.evaluate((el) => el === document.activeElement)

/** Tab, until `target` has the focus. Throws when it never does. */
export const tabTo = async (target: Locator): Promise<void> => {
  const { keyboard } = target.page()
  for (let stops = 0; stops < PATIENCE; stops += 1) {
    if (await isFocused(target)) return
    await keyboard.press('Tab')
  }
  throw new Error(`The keyboard does not come to ${target}.`)
}

/** Moves to `target` and presses `key` there. */
export const pressAt = async (target: Locator, key: 'Enter' | 'Space' = 'Enter'): Promise<void> => {
  await tabTo(target)
  await target.page().keyboard.press(key)
}

/** Moves to the field and replaces its content. */
export const typeInto = async (field: Locator, text: string): Promise<void> => {
  await tabTo(field)
  await field.page().keyboard.press('Control+a')
  await field.page().keyboard.type(text)
}

/** The open dialog. The focus is in it and stays in it all the way round, and it has a label. */
export const openDialog = async (page: Page): Promise<Locator> => {
  const dialog = page.getByRole('dialog', { name: /\w/ })
  await dialog.locator(':focus').waitFor()
  // Read in one call, because the page may replace the focused element in between. Between the last and the first stop
  // the browser has the focus.
  const keepsFocus = () =>
    dialog.evaluate((el) => document.activeElement === document.body || el.contains(document.activeElement))
  const stops = await dialog.locator('a, button, input:not([type=hidden]), select, summary, [tabindex]').count()
  for (let stop = 0; stop <= stops; stop += 1) {
    await page.keyboard.press('Tab')
    expect(await keepsFocus()).toBe(true)
  }
  return dialog
}

/**
 * Elements that take the focus without a visible ring, or are covered. Checked forwards and backwards, because
 * scrolling moves them to another edge of the window.
 */
export const focusProblems = async (page: Page): Promise<string[]> => {
  await page.keyboard.press('Tab') // from now on the browser takes a focus by script for one by keyboard
  return page.evaluate(() => {
    const STOPS =
      'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]:not([tabindex="-1"])'
    const within = document.querySelector('dialog[open]') ?? document.body
    const stops = [...within.querySelectorAll<HTMLElement>(STOPS)].filter(
      (el) => el.checkVisibility({ visibilityProperty: true }) && !el.matches(':disabled'),
    )
    const hasRing = (el: Element | null, up = 2): boolean => {
      if (!el || up < 0) return false
      const { outlineStyle, outlineWidth } = getComputedStyle(el)
      return (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2) || hasRing(el.parentElement, up - 1)
    }
    const isSeen = (el: Element): boolean =>
      [...el.getClientRects()].some(({ left, right, top, bottom }) =>
        [top + 2, (top + bottom) / 2, bottom - 2].some((y) => {
          const hit = document.elementFromPoint(Math.min((left + right) / 2, innerWidth - 2), y)
          return hit !== null && (el.contains(hit) || hit.contains(el) || hit.closest('#drawer') !== null)
        }),
      )
    const found = new Set<string>()
    const was = document.activeElement
    for (const order of [stops, stops.toReversed()])
      for (const el of order) {
        el.focus()
        if (document.activeElement !== el) continue // a radio of a group that has another, a fold that is shut
        const label = el.outerHTML.slice(0, 120)
        if (!hasRing(el)) found.add(`no ring: ${label}`)
        if (!isSeen(el)) found.add(`covered: ${label}`)
      }
    if (was instanceof HTMLElement) was.focus()
    return [...found]
  })
}
