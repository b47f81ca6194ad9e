/** Which paths are model traffic, answered in OpenAI's format; all others are the dashboard. */

const MODEL_PATH = /^\/(v1|backend-api|wham)(\/|$)/

export const isModelPath = (path: string): boolean => MODEL_PATH.test(path)
