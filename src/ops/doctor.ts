/** All health checks, each with a finding and advice. */
import type { Clock } from '../lib/clock.ts'
import { type Finding, getWorstVerdict, runChecks, type Verdict } from './checks.ts'
import { type FolderFacts, folderChecks } from './folder-checks.ts'
import { type UpstreamFacts, upstreamChecks } from './upstream-checks.ts'

interface Report {
  /** The worst verdict. */
  verdict: Verdict
  findings: Finding[]
  /** ms since epoch */
  at: number
}

interface DoctorDeps {
  clock: Clock
  folder: () => Promise<FolderFacts>
  upstream: UpstreamFacts
}

/** Takes at most five seconds longer than `folder`, for the upstream checks. Never rejects. */
export const runDoctor = async ({ clock, folder, upstream }: DoctorDeps): Promise<Report> => {
  const at = clock.now()
  const findings = await runChecks([...folderChecks(await folder()), ...upstreamChecks(upstream)])
  return { verdict: getWorstVerdict(findings), findings, at }
}

const FRESH_MS = 30_000

/** Caches a report for half a minute, so that page views do not cause upstream traffic. */
export class Doctor {
  readonly #deps: DoctorDeps
  #last: { at: number; report: Promise<Report> } | null = null

  constructor(deps: DoctorDeps) {
    this.#deps = deps
  }

  report(): Promise<Report> {
    const now = this.#deps.clock.monotonic()
    if (!this.#last || now - this.#last.at >= FRESH_MS) this.#last = { at: now, report: runDoctor(this.#deps) }
    return this.#last.report
  }
}
