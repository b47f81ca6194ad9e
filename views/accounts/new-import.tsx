/** Importing files in three steps: hand them over, see what each would do, choose. */
import type { FC } from 'hono/jsx'
import type { ImportValue, PreflightFile } from '../../src/admin/account-import.ts'
import type { Verdict } from '../../src/model/import-preflight.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import { Since, Until } from '../ui/time.tsx'
import { accountPath } from './links.ts'
import { Back, Frame, Leave, StepForm } from './new-frame.tsx'
import { planName } from './standing.tsx'

interface ImportProps {
  /** Null: no files were handed over yet. */
  draft: ImportValue | null
  problem: string | null
}

export const NewImport: FC<ImportProps> = ({ draft, problem }) => {
  if (draft === null) return <Choose problem={problem} />
  return draft.accounts === null ? (
    <Preflight draft={draft} problem={problem} />
  ) : (
    <Imported accounts={draft.accounts} />
  )
}

const Choose: FC<Omit<ImportProps, 'draft'>> = ({ problem }) => (
  <Frame title="Import auth.json files">
    <p>
      The Codex CLI keeps its sign-in in <code>~/.codex/auth.json</code>. Nothing is stored before you have seen what
      each file would do.
    </p>
    <StepForm name="files" action="/api/accounts/import/preflight" problem={problem} hasFiles>
      <label class="drop">
        <span class="field-label">Files, or one ZIP of them</span>
        <input type="file" name="auth_json" accept=".json,.zip,application/json,application/zip" multiple required />
        <span class="hint">Drop them here, or choose them.</span>
      </label>
      <div class="actions">
        <Submit>Look at them</Submit>
        <Back target={null} />
      </div>
    </StepForm>
  </Frame>
)

const VERDICTS: Record<Verdict, [label: string, tone: Tone]> = {
  new: ['New', 'good'],
  newer: ['Newer', 'good'],
  same: ['Same', 'idle'],
  older: ['Older', 'wait'],
  undated: ['No date', 'wait'],
  broken: ['Broken', 'bad'],
}

const Preflight: FC<{ draft: ImportValue; problem: string | null }> = ({ draft, problem }) => {
  const { preflightId, files, expiresAt, generatedAt } = draft
  const useful = files.filter(({ isWorthwhile }) => isWorthwhile).length
  return (
    <Frame title={useful === 0 ? 'Nothing to import' : 'What the import would do'} isWide>
      <StepForm name="chosen" action={`/api/accounts/import/preflight/${preflightId}`} problem={problem}>
        {files.length > 1 && <p>{countsOf(files)}</p>}
        <ul class="preflight">
          {files.map((file) => (
            <FileRow file={file} now={generatedAt} />
          ))}
        </ul>
        <div class="actions">
          {useful > 0 && <Submit>Import the chosen</Submit>}
          <ButtonLink isMain={useful === 0} href="/accounts/new/import">
            Other files
          </ButtonLink>
          <Leave label="Cancel" />
        </div>
      </StepForm>
      {useful > 0 && (
        <p class="muted small" data-now={generatedAt}>
          Nothing is stored yet. The files are let go of <Until at={expiresAt} now={generatedAt} />.
        </p>
      )}
    </Frame>
  )
}

/** The list can be a thousand rows long, and the broken ones stand at its end. */
const countsOf = (files: readonly PreflightFile[]): string => {
  const useful = files.filter(({ isWorthwhile }) => isWorthwhile).length
  const broken = files.filter(({ verdict }) => verdict === 'broken').length
  const counts: [count: number, what: string][] = [
    [useful, 'to import'],
    [files.length - useful - broken, 'that would change nothing'],
    [broken, 'broken'],
  ]
  const told = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${files.length} files: ${told.join(', ')}.`
}

const FileRow: FC<{ file: PreflightFile; now: string }> = ({ file, now }) => {
  const [label, tone] = VERDICTS[file.verdict]
  return (
    <li class="preflight-row">
      <label class="preflight-file">
        <input type="checkbox" name="files" value={file.id} checked={file.isWorthwhile} disabled={!file.isWorthwhile} />
        <span class="preflight-what">
          <strong>{file.email ?? file.file}</strong>
          <span class="muted">
            {[file.email && file.file, planName(file.planType), file.workspaceLabel].filter(Boolean).join(' · ')}
          </span>
        </span>
        <span class="preflight-verdict">
          <Badge tone={tone}>{label}</Badge>
          <span class="muted">
            {file.reason ?? effectOf(file)}
            {file.lastRefreshAt && (
              <>
                {' '}
                Its tokens were renewed <Since at={file.lastRefreshAt} now={now} />.
              </>
            )}
          </span>
        </span>
      </label>
    </li>
  )
}

const effectOf = ({ existing }: PreflightFile): string =>
  existing ? `Renews the tokens of ${existing.displayName}.` : 'Adds an account.'

const Imported: FC<{ accounts: NonNullable<ImportValue['accounts']> }> = ({ accounts }) => (
  <Frame
    title={accounts.length === 1 ? 'The account was imported' : `${accounts.length} accounts were imported`}
    isChange
  >
    <ul class="imported">
      {accounts.map(({ accountId, displayName, tokensKept, isPaused }) => (
        <li>
          <CheckIcon />
          <span>
            <a href={accountPath(accountId)}>{displayName}</a>
            {tokensKept && <span class="muted"> · kept the tokens it had</span>}
            {isPaused && <span class="muted"> · still paused</span>}
          </span>
        </li>
      ))}
    </ul>
    {accounts.some(({ isPaused }) => !isPaused) && (
      <p class="muted">{accounts.length === 1 ? 'Its' : 'Their'} usage and models are being fetched.</p>
    )}
    <div class="actions">
      <Leave label="Done" isMain />
      <ButtonLink href="/accounts/new">Add another</ButtonLink>
    </div>
  </Frame>
)
