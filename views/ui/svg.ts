/** SVG coordinates with two decimals, finer than any screen. */

export const units = (value: number): string => String(Math.round(value * 100) / 100)
