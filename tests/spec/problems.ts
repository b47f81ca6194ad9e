/** Checks error responses against the two formats: OpenAI's on model routes, the dashboard's elsewhere. */
import { expect } from 'bun:test'

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
  /^\/(v1|backend-api|wham)(\/|$)/.test(path) ? modelProblem(response) : dashboardProblem(response)

/** Status and code together, as most rules state them. */
export const statusAndCode = async (path: string, response: Response): Promise<[status: number, code: string]> => [
  response.status,
  (await problemAt(path, response)).code,
]

const getProblem = async (response: Response): Promise<Problem> => {
  expect(response.headers.get('content-type')).toStartWith('application/json')
  const document = (await response.json()) as { error: Problem } // as: checked below
  expect(Object.keys(document)).toEqual(['error'])
  expect(document.error.code).toBeString()
  expect(document.error.message).not.toBe('')
  return document.error
}
