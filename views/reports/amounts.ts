/** Amounts of a report in words. */
import type { Sums } from '../../src/model/reports/report-sums.ts'
import { plural, tokenCost } from '../ui/amounts.ts'

export const tokens = ({ inputTokens, outputTokens }: Sums): number => inputTokens + outputTokens

/** A dash without a known price. */
export const getCost = (sums: Sums): string => tokenCost(sums.costUsd, tokens(sums))

export const unpricedText = ({ unpriced }: Sums): string | null =>
  unpriced === 0 ? null : `${plural(unpriced, 'request')} without a known price`
