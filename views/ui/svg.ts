/** Geometry as attributes want it: two decimals are finer than any screen. */

export const units = (value: number): string => String(Math.round(value * 100) / 100)
