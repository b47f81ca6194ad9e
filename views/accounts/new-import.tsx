/** The File tab: import a file or pasted text. One clean file is imported right away; otherwise a preview comes first. */
import type { FC } from 'hono/jsx'
import type { ImportOutcome, PreflightEntry, Verdict } from '../../src/model/accounts/import-preflight.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import { Since, Until } from '../ui/time.tsx'
import { planName } from './availability.tsx'
import { accountPath } from './links.ts'
import { AddFrame, Frame, getTabPath, Leave, StepForm } from './new-frame.tsx'

export interface ImportValue {
  preflightId: string
  /** ISO 8601: until when the files are kept. */
  expiresAt: string
  generatedAt: string
  files: PreflightFile[]
  /** The result; null until imported. */
  accounts: readonly ImportOutcome[] | null
}

export interface PreflightFile {
  id: string
  file: string
  verdict: Verdict
  reason: string | null
  /** Whether importing it would change anything. */
  isWorthwhile: boolean
  email: string | null
  planType: string | null
  workspaceLabel: string | null
  /** ISO 8601: when its tokens were refreshed, according to the file or the tokens. */
  lastRefreshAt: string | null
  /** The account whose tokens it would replace. */
  existing: PreflightEntry['existing']
}

interface ImportProps {
  /** Null: no files sent yet. */
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
  <AddFrame way="import" target={null}>
    <p>
      Import the <code>auth.json</code> of the Codex CLI. You’ll find it at <code>~/.codex/auth.json</code>.
    </p>
    <StepForm name="files" action="/api/accounts/import/preflight?importSingle=true" problem={problem} hasFiles>
      <label class="drop">
        <span class="field-label">Drop auth.json files or a ZIP here</span>
        <input type="file" name="auth_json" accept=".json,.zip,application/json,application/zip" multiple />
      </label>
      <label class="field">
        <span class="field-label">Or paste the text of an auth.json</span>
        <textarea
          class="paste-file"
          name="auth_json"
          rows={4}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          placeholder={'{ "tokens": { … } }'}
        />
      </label>
      <div class="actions">
        <Submit>Import</Submit>
        <Leave label="Cancel" />
      </div>
      <p class="muted small">
        If something needs a decision, you’ll see a preview first. Coming from codex-lb, CLIProxyAPI or another tool?{' '}
        <a href="/accounts/import">Import from another tool</a>.
      </p>
    </StepForm>
  </AddFrame>
)

const VERDICTS: Record<Verdict, [label: string, tone: Tone]> = {
  new: ['New', 'good'],
  newer: ['Newer', 'good'],
  same: ['Same', 'idle'],
  older: ['Older', 'wait'],
  undated: ['Undated', 'wait'],
  broken: ['Invalid', 'bad'],
}

const Preflight: FC<{ draft: ImportValue; problem: string | null }> = ({ draft, problem }) => {
  const { preflightId, files, expiresAt, generatedAt } = draft
  const useful = files.filter(({ isWorthwhile }) => isWorthwhile).length
  return (
    <Frame title={useful === 0 ? 'Nothing to import' : 'Preview import'} isWide>
      <StepForm name="chosen" action={`/api/accounts/import/preflight/${preflightId}`} problem={problem}>
        {files.length > 1 && <p>{getCounts(files)}</p>}
        <ul class="preflight">
          {files.map((file) => (
            <FileRow file={file} now={generatedAt} />
          ))}
        </ul>
        <div class="actions">
          {useful > 0 && <Submit>Import selected</Submit>}
          <ButtonLink isMain={useful === 0} href={getTabPath('import')}>
            Select other files
          </ButtonLink>
          <Leave label="Cancel" />
        </div>
      </StepForm>
      {useful > 0 && (
        <p class="muted small" data-now={generatedAt}>
          Nothing is stored yet. This preview expires <Until at={expiresAt} now={generatedAt} />.
        </p>
      )}
    </Frame>
  )
}

/** The list may have a thousand rows, with invalid ones last. */
const getCounts = (files: readonly PreflightFile[]): string => {
  const useful = files.filter(({ isWorthwhile }) => isWorthwhile).length
  const broken = files.filter(({ verdict }) => verdict === 'broken').length
  const counts: [count: number, what: string][] = [
    [useful, 'to import'],
    [files.length - useful - broken, 'without changes'],
    [broken, 'invalid'],
  ]
  const parts = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${files.length} files: ${parts.join(', ')}.`
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
            {file.reason ?? getEffect(file)}
            {file.lastRefreshAt && (
              <>
                {' '}
                Tokens refreshed <Since at={file.lastRefreshAt} now={now} />.
              </>
            )}
          </span>
        </span>
      </label>
    </li>
  )
}

const getEffect = ({ existing }: PreflightFile): string =>
  existing ? `Replaces the tokens of ${existing.displayName}.` : 'Adds this account.'

const Imported: FC<{ accounts: NonNullable<ImportValue['accounts']> }> = ({ accounts }) => (
  <Frame title={accounts.length === 1 ? 'Account imported' : `${accounts.length} accounts imported`} isChange>
    <ul class="imported">
      {accounts.map(({ accountId, displayName, tokensKept, isPaused }) => (
        <li>
          <CheckIcon />
          <span>
            <a href={accountPath(accountId)}>{displayName}</a>
            {tokensKept && <span class="muted"> · already up to date</span>}
            {isPaused && <span class="muted"> · still paused</span>}
          </span>
        </li>
      ))}
    </ul>
    {accounts.some(({ isPaused }) => !isPaused) && <p class="muted">Usage and models are being fetched.</p>}
    <div class="actions">
      <Leave label="Done" isMain />
      <ButtonLink href={getTabPath('import')}>Add another</ButtonLink>
    </div>
  </Frame>
)
