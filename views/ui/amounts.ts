/** Amounts as text: counts, tokens and dollars, with a readable number of digits. */

/** "12,400". */
export const countText = (count: number): string => count.toLocaleString('en')

/** Shortened: "840", "12.4 k", "3.1 M". */
export const shortCount = (count: number): string => {
  if (count < 1000) return String(count)
  if (count < 999_500) return `${trim(count / 1000)} k`
  return count < 999_500_000 ? `${trim(count / 1e6)} M` : `${trim(count / 1e9)} G`
}

const trim = (value: number): string => value.toFixed(value < 99.95 ? 1 : 0).replace(/\.0$/, '')

/** The cost of a request: dollars with enough digits for small amounts. */
export const costText = (usd: number): string => {
  if (usd === 0) return '$0'
  if (usd < 0.0001) return '<$0.0001'
  if (usd >= 1000) return `$${Math.round(usd).toLocaleString('en')}`
  return `$${usd.toFixed(usd < 0.1 ? 4 : usd < 10 ? 3 : 2)}`
}

/** A sum or limit: dollars and cents, with more digits for tiny amounts. */
export const dollarText = (usd: number): string =>
  usd < 0.1 ? costText(usd) : `$${usd.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`

/** The cost of tokens: zero with tokens means an unknown price, shown as a dash. */
export const tokenCost = (usd: number, tokens: number): string => (usd === 0 && tokens > 0 ? '–' : dollarText(usd))

/** "3 requests", "1 request". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`
