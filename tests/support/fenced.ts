/** The code blocks of a Markdown document, so that a test can run them unchanged. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

interface Fenced {
  /** The heading above it. */
  heading: string
  /** The language of the opening fence; empty if it has none. */
  language: string
  text: string
}

/** All blocks of a file of this repository, in order. */
const fencedIn = (path: string): Fenced[] => {
  const blocks: Fenced[] = []
  let heading = ''
  let open: Fenced | null = null
  for (const line of readFileSync(resolve(import.meta.dir, '../..', path), 'utf8').split('\n')) {
    const fence = /^```(\S*)/.exec(line)
    if (open) {
      if (fence) open = null
      else open.text += `${line}\n`
    } else if (fence) {
      open = { heading, language: fence[1] ?? '', text: '' }
      blocks.push(open)
    } else heading = /^#+ (.+)/.exec(line)?.[1] ?? heading
  }
  return blocks
}

/**
 * The code blocks under one heading. Throws if there are none: the document has changed, and the test has to as well.
 */
export const getCodeBlocks = (path: string, heading: string, language?: string): string[] => {
  const found = fencedIn(path).filter((one) => one.heading === heading && (language ?? one.language) === one.language)
  if (found.length === 0) throw new Error(`${path} has no such block under "${heading}".`)
  return found.map(({ text }) => text)
}
