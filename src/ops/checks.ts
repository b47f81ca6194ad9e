/** The result of one health check: a verdict, what was found, and what to do about it. */

const VERDICTS = ['ok', 'unknown', 'warning', 'problem'] as const
export type Verdict = (typeof VERDICTS)[number]

export interface Finding {
  /** Stable, for scripts: `data_folder`, `upstream_http`. */
  id: string
  /** A few words. */
  title: string
  verdict: Verdict
  /** What was found, in one sentence. */
  says: string
  /** What to do; null when there is nothing. */
  advice: string | null
}

/** A named check. A throw becomes a finding, so the other checks still run. */
export interface Check {
  id: string
  title: string
  run(): Promise<Found> | Found
}

export type Found = Omit<Finding, 'id' | 'title'>

export const passed = (says: string): Found => ({ verdict: 'ok', says, advice: null })
export const unknown = (says: string, advice: string | null = null): Found => ({ verdict: 'unknown', says, advice })
export const warning = (says: string, advice: string): Found => ({ verdict: 'warning', says, advice })
export const problem = (says: string, advice: string): Found => ({ verdict: 'problem', says, advice })

/** Runs all in parallel; results in order. */
export const runChecks = (checks: readonly Check[]): Promise<Finding[]> => Promise.all(checks.map(runOne))

const runOne = async ({ id, title, run }: Check): Promise<Finding> => {
  try {
    return { id, title, ...(await run()) }
  } catch (err) {
    return { id, title, ...unknown(isMissing(err) ? MISSING : `The check failed: ${err}`) }
  }
}

const MISSING = 'It doesn’t exist yet. It is created on first start.'

const isMissing = (err: unknown): boolean => err instanceof Error && 'code' in err && err.code === 'ENOENT'

/** The worst verdict; `unknown` counts as good. */
export const getWorstVerdict = (findings: readonly Finding[]): Verdict =>
  findings.reduce<Verdict>((so, { verdict }) => (VERDICTS.indexOf(verdict) > VERDICTS.indexOf(so) ? verdict : so), 'ok')
