/** Which part of the service a path belongs to: model traffic is answered as OpenAI does, the rest is for people. */

export const isModelPath = (path: string): boolean => /^\/(v1|backend-api)(\/|$)/.test(path)
