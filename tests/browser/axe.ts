/** Runs axe on an open page with the rules of WCAG 2.2 A and AA and the best practices. */
import { readFileSync } from 'node:fs'
import type axe from 'axe-core'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'

declare global {
  interface Window {
    axe: typeof axe
  }
}

/** Compiled by each page: the minified file takes half the time. */
const SOURCE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

/**
 * In each document that the page opens from now on. The browser keeps the script, because sending it to each document
 * costs more than compiling it. It uses the debugger protocol, because pages allow no other scripts.
 */
export const injectAxe = (page: Page): Promise<unknown> => page.addInitScript({ content: SOURCE })

const EVERYTHING: RunOptions = { rules: { 'target-size': { enabled: true } } }
/** What another theme or another width can change. */
const LOOKS: RunOptions = { runOnly: ['color-contrast', 'target-size', 'scrollable-region-focusable'] }

/** All violations on the page, of any impact: rule, impact, and the element. */
export const getViolations = async (page: Page, about: 'everything' | 'looks'): Promise<string[]> => {
  const options: RunOptions = {
    ...(about === 'looks' ? LOOKS : EVERYTHING),
    resultTypes: ['violations'],
    preload: false,
  }
  const violations: AxeResults['violations'] = await page.evaluate(
    async (how) => (await window.axe.run(document, how)).violations,
    options,
  )
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ html }) => `${id} (${impact}): ${html.slice(0, 200)}`),
  )
}
