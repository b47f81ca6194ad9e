/** Which paths are model traffic, answered in OpenAI's format; all others are the dashboard. */

const MODEL_PATH = /^\/(v1|backend-api|wham|mcp)(\/|$)/

export const isModelPath = (path: string): boolean => MODEL_PATH.test(path)

/** Whether the path is answered in Anthropic's format. */
export const isMessagesPath = (path: string): boolean => MESSAGES_PATH.test(path)

const MESSAGES_PATH = /^\/v1\/messages(\/|$)/
