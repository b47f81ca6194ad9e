/** Which part of the service a path belongs to: model traffic is answered as OpenAI does, the rest is for people. */

const MODEL_PATH = /^\/(v1|backend-api)(\/|$)/

export const isModelPath = (path: string): boolean => MODEL_PATH.test(path)
