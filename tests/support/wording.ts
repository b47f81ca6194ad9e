/** The text that people read, extracted from source files and Markdown, so that a test can check its wording. */

interface Line {
  number: number
  text: string
}

/** Prose of a Markdown document: without fenced blocks, code spans and link targets. */
export const getProse = (markdown: string): Line[] => {
  let isFenced = false
  return markdown.split('\n').flatMap((text, index) => {
    if (text.startsWith('```')) isFenced = !isFenced
    else if (!isFenced) {
      const prose = text.replaceAll(/`[^`]*`/g, '').replaceAll(/\]\([^)]*\)/g, ']')
      return [{ number: index + 1, text: prose }]
    }
    return []
  })
}

/** A comment, a string or a template, in this order. A quote in a comment opens no string. */
const TOKEN = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g
/** Between tags and braces of JSX, where no operator of code is. */
const JSX_TEXT = /[>}]([^<>{}=;]*)(?=[<{])/g

/**
 * Strings, templates and text of JSX in TypeScript. Only what has a space in it: single words are names and codes.
 * Not a parser, so it may also return a piece of code from between two tags.
 */
export const getStrings = (source: string, { isJsx }: { isJsx: boolean }): Line[] => {
  const found: Line[] = []
  const add = (text: string, at: number) => {
    if (/\S\s+\S/.test(text)) found.push({ number: source.slice(0, at).split('\n').length, text })
  }
  const withoutTokens = source.replaceAll(TOKEN, (token, at: number) => {
    if (!token.startsWith('/')) add(token.slice(1, -1).replaceAll(/\$\{[^}]*\}/g, '…'), at)
    return token.replaceAll(/[^\n]/g, ' ')
  })
  if (isJsx) for (const match of withoutTokens.matchAll(JSX_TEXT)) add(match[1] ?? '', match.index)
  return found
}

/** The comments of a TypeScript file, each as one line of text. */
export const getComments = (source: string): Line[] =>
  [...source.matchAll(TOKEN)].flatMap(({ 0: token, index }) =>
    token.startsWith('/')
      ? [
          {
            number: source.slice(0, index).split('\n').length,
            text: token.replaceAll(/\s*\n\s*(?:\*\/?|\/\/)?\s*/g, ' '),
          },
        ]
      : [],
  )
