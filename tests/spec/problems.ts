/** Checks error responses against the two formats: OpenAI's on model routes, the dashboard's elsewhere. */
import { expect } from 'bun:test'
import { getObject } from '../../src/lib/json.ts'

interface Problem {
  code: string
  message: string
  type?: string
  param?: string | null
  details?: Record<string, unknown>
  [member: string]: unknown
}

/** The error of a model route; fails unless it is exactly `{error: {message, type, code, param, …}}`. */
export const modelProblem = async (response: Response): Promise<Problem> => {
  const problem = await getProblem(response)
  expect(Object.keys(problem)).toEqual(expect.arrayContaining(['message', 'type', 'code', 'param']))
  expect(problem.type).toBeString()
  return problem
}

/** The error of a dashboard route; fails unless it is `{error: {code, message}}` with at most `param` and `details`. */
export const dashboardProblem = async (response: Response): Promise<Problem> => {
  const problem = await getProblem(response)
  const unknown = Object.keys(problem).filter((name) => !['code', 'message', 'param', 'details'].includes(name))
  expect(unknown).toEqual([])
  return problem
}

/** Whichever envelope belongs to the path. */
export const problemAt = (path: string, response: Response): Promise<Problem> =>
  path.startsWith('/v1/messages') ? messagesProblem(response) : otherProblem(path, response)

const otherProblem = (path: string, response: Response): Promise<Problem> =>
  /^\/(v1|mcp|backend-api|wham)(\/|$)/.test(path) ? modelProblem(response) : dashboardProblem(response)

/** Status and code together, as most rules state them. */
export const statusAndCode = async (path: string, response: Response): Promise<[status: number, code: string]> => [
  response.status,
  (await problemAt(path, response)).code,
]

const messagesProblem = async (response: Response): Promise<Problem> => {
  const document = (await response.json()) as { error: Omit<Problem, 'code'> } // as: checked below
  expect<unknown>(document).toEqual({
    type: 'error',
    error: { type: expect.any(String), message: expect.any(String), details: { error_code: expect.any(String) } },
    request_id: response.headers.get('request-id'),
  })
  return { message: String(document.error.message), code: String(getObject(document.error.details).error_code) }
}

const getProblem = async (response: Response): Promise<Problem> => {
  expect(response.headers.get('content-type')).toStartWith('application/json')
  const document = (await response.json()) as { error: Problem } // as: checked below
  expect(Object.keys(document)).toEqual(['error'])
  expect(document.error.code).toBeString()
  expect(document.error.message).not.toBe('')
  return document.error
}
