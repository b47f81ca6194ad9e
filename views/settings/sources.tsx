/** Settings, Model sources: OpenAI-compatible servers beside the pool, with their health. */
import type { FC } from 'hono/jsx'
import type { ShownSource } from '../../src/model/sources/source-view.ts'
import { SECTIONS } from '../../src/settings/setting.ts'
import { countText } from '../ui/amounts.ts'
import { Badge } from '../ui/badge.tsx'
import { ButtonLink } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Outcome } from '../ui/form.tsx'
import { LivePart } from '../ui/live.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { SettingsCard, type ShownSettings, UnsavedBar } from './section.tsx'
import type { Page } from './source.tsx'
import { CAUSES, getCapabilities, HEALTH } from './source-words.ts'

export interface SourceList extends Page {
  sources: ShownSource[]
  settings: ShownSettings | null
}

export const SourcesPage: FC<SourceList> = ({ frame, now, done, problem, sources, settings, canWrite }) => {
  const sections = SECTIONS.filter((section) => settings?.fields.some((field) => field.section === section))
  return (
    <SettingsFrame frame={frame} now={now} title="Model sources">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      {sources.length === 0 ? (
        <section class="card empty">
          <h2>No model sources yet</h2>
          <p>
            A model source is an OpenAI-compatible server that Sluice uses beside your ChatGPT accounts: Ollama, vLLM,
            llama.cpp, LM Studio, OpenRouter, or OpenAI itself with an API key.
          </p>
          {canWrite ? (
            <ButtonLink isMain href="/settings/sources/new">
              Add source
            </ButtonLink>
          ) : (
            <p class="muted small">You have read-only access.</p>
          )}
        </section>
      ) : (
        <Card
          id="sources"
          title="Sources"
          count={sources.length}
          aside={
            canWrite && (
              <ButtonLink class="button button-plain card-action" href="/settings/sources/new">
                Add source
              </ButtonLink>
            )
          }
        >
          <LivePart id="source-list" topics={['settings']} src="/settings/sources">
            <ul class="rows">
              {sources.map((source) => (
                <li class="row source-row">
                  <Row source={source} now={now} canWrite={canWrite} />
                </li>
              ))}
            </ul>
          </LivePart>
        </Card>
      )}
      {settings && sections.map((section) => <SettingsCard section={section} settings={settings} />)}
      {settings && sections.length > 0 && <UnsavedBar />}
    </SettingsFrame>
  )
}

const Row: FC<{ source: ShownSource; now: string; canWrite: boolean }> = ({ source, now, canWrite }) => (
  <>
    <span class="row-main">
      <a class="source-name" href={`/settings/sources/${source.id}`}>
        {source.name}
      </a>{' '}
      <Health source={source} />
      <span class="source-facts muted small">
        {source.baseUrl && <code>{source.baseUrl}</code>}
        <span>{getCapabilities(source).join(', ') || 'No API selected'}</span>
        <span>{modelsText(source)}</span>
      </span>
      <LastTest source={source} now={now} />
    </span>
    {canWrite && (
      <Action
        name={`test-${source.id}`}
        action={`/api/model-sources/${source.id}/test`}
        label="Test"
        class="source-test"
      />
    )}
  </>
)

const modelsText = ({ models }: ShownSource): string => {
  const offered = models.filter(({ isEnabled }) => isEnabled)
  if (offered.length === 0) return 'no models'
  return offered.length <= FEW ? offered.map(({ model }) => model).join(', ') : `${countText(offered.length)} models`
}

const FEW = 3

export const Health: FC<{ source: Pick<ShownSource, 'isEnabled' | 'healthStatus'> }> = ({ source }) => {
  const [name, tone] = HEALTH[source.healthStatus]
  return source.isEnabled ? <Badge tone={tone}>{name}</Badge> : <Badge tone="idle">Off</Badge>
}

/** The last test, or why requests fail since. */
export const LastTest: FC<{ source: ShownSource; now: string }> = ({ source, now }) => {
  const { lastTest, healthStatus, healthCode, healthCheckedAt } = source
  if (healthStatus === 'failing' && healthCode !== null)
    return (
      <span class="source-failure small">
        {lastTest?.ok === false ? getProblem(source) : `It ${CAUSES[healthCode] ?? 'failed'}.`}{' '}
        {healthCheckedAt && (
          <span class="muted">
            <Since at={healthCheckedAt} now={now} />
          </span>
        )}
      </span>
    )
  if (lastTest === null) return <span class="muted small">Not tested yet.</span>
  const times = lastTest.calls.map(({ capability, durationMs }) => `${capability} ${countText(durationMs)} ms`)
  return (
    <span class="muted small">
      Tested <Since at={lastTest.at} now={now} />
      {lastTest.models.count !== null && `, lists ${countText(lastTest.models.count)} models`}
      {times.length > 0 && `, ${times.join(', ')}`}
    </span>
  )
}

const getProblem = ({ lastTest, healthCode }: ShownSource): string => {
  const error = lastTest?.calls.find((call) => call.error)?.error ?? lastTest?.models.error
  return error?.message ?? `It ${CAUSES[error?.code ?? healthCode ?? ''] ?? 'failed'}.`
}
