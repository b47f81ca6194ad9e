/** Settings: one model source with its last test, its models and prices, and the form that changes it. */
import type { FC } from 'hono/jsx'
import type { ShownSource } from '../../src/model/sources/source-view.ts'
import type { Titled } from '../titles.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, Form, Outcome } from '../ui/form.tsx'
import { TableHead } from '../ui/table.tsx'
import { type Frame, SettingsFrame } from './frame.tsx'
import { FORM_MODELS, ModelRows, SourceFields } from './source-form.tsx'
import { CAPABILITY_NAMES, getCapabilities, priceText } from './source-words.ts'
import { Health, LastTest } from './sources.tsx'

export interface Page {
  frame: Frame
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
  /** The user may change sources. */
  canWrite: boolean
}

export type NewSourceForm = Page

export interface OneSource extends Page {
  source: ShownSource
}

export const NewSourcePage: FC<NewSourceForm> = ({ frame, now, problem }) => (
  <SettingsFrame frame={frame} now={now} title="Add source">
    <section class="card">
      <Form name="source" class="card-body" action="/api/model-sources/" problem={problem}>
        <SourceFields source={null} />
        <div class="actions">
          <Submit>Add source</Submit>
          <ButtonLink href="/settings/sources">Cancel</ButtonLink>
        </div>
      </Form>
    </section>
  </SettingsFrame>
)

export const SourcePage: Titled<OneSource> = ({ frame, now, done, problem, source, canWrite }) => (
  <SettingsFrame frame={frame} now={now} title={source.name}>
    <Outcome done={done} problem={problem} />
    <nav class="crumbs" aria-label="Breadcrumb">
      <a href="/settings/sources">Model sources</a>
    </nav>
    <TextCard id="source-health" title="Health" aside={<Health source={source} />}>
      <p>
        <LastTest source={source} now={now} />
      </p>
      {source.lastTest && <TestCalls {...source} />}
      {canWrite && (
        <div class="actions">
          <Action name="test" action={`/api/model-sources/${source.id}/test`} label="Test now" />
        </div>
      )}
    </TextCard>
    <Models source={source} canWrite={canWrite} />
    {canWrite ? <Edit source={source} /> : <Facts source={source} />}
    {canWrite && (
      <TextCard id="source-delete" title="Delete source">
        <p>Requests for its models are rejected afterwards, unless another source lists them. The log stays.</p>
        <div class="actions">
          <Action
            name="delete"
            action={`/api/model-sources/${source.id}/delete`}
            label="Delete source"
            confirm={`Delete ${source.name}? Its API key is erased.`}
            isRisky
          />
        </div>
      </TextCard>
    )}
  </SettingsFrame>
)

SourcePage.title = ({ source }) => source.name

const TestCalls: FC<ShownSource> = ({ lastTest }) =>
  lastTest && lastTest.calls.length > 0 ? (
    <ul class="bullets">
      {lastTest.calls.map(({ capability, model, ok, durationMs, error }) => (
        <li>
          {CAPABILITY_NAMES[capability]}, <code>{model}</code>:{' '}
          {ok ? `answered in ${countText(durationMs)} ms` : (error?.message ?? 'failed')}
        </li>
      ))}
      {lastTest.models.missing.length > 0 && (
        <li>Not listed by the source: {lastTest.models.missing.slice(0, 20).join(', ')}</li>
      )}
    </ul>
  ) : null

const Models: FC<{ source: ShownSource; canWrite: boolean }> = ({ source, canWrite }) => (
  <Card id="source-models" title="Models" count={source.models.length || null}>
    {source.models.length > 0 && (
      <div class="scroll-x" tabindex={0}>
        <table class="figures source-table">
          <caption class="sr">Models and prices</caption>
          <TableHead texts={['Model', 'Supports', 'Price']} numbers={['Context', 'Output']} />
          <tbody>
            {source.models.map((model) => (
              <tr class={model.isEnabled ? undefined : 'is-off'}>
                <th scope="row">
                  <code>{model.model}</code>
                  {model.displayName && <span class="muted small"> {model.displayName}</span>}
                  {!model.isEnabled && <span class="muted small"> (off)</span>}
                </th>
                <td class="text">{supportsText(model)}</td>
                <td class="text">{priceText(model) || <span class="muted">no price</span>}</td>
                <td>{model.contextWindow ? countText(model.contextWindow) : '–'}</td>
                <td>{model.maxOutputTokens ? countText(model.maxOutputTokens) : '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
    <div class={source.models.length > 0 ? 'card-part split' : 'card-body split'}>
      <p class="muted">
        {source.models.length === 0
          ? 'No models yet, so the source is not used. Discover them, or add them by name below.'
          : 'Without a price, the cost of requests is unknown and missing from limits and reports.'}
      </p>
      {canWrite && (
        <div class="actions">
          <Action
            name="discover"
            action={`/api/model-sources/${source.id}/discover`}
            target="#main"
            label="Discover models"
          />
        </div>
      )}
    </div>
  </Card>
)

const supportsText = (model: ShownSource['models'][number]): string =>
  [
    model.supportsStreaming ? 'streaming' : null,
    model.supportsTools ? 'tools' : null,
    model.supportsVision ? 'images' : null,
  ]
    .filter(Boolean)
    .join(', ') || '–'

const Facts: FC<{ source: ShownSource }> = ({ source }) => (
  <TextCard id="source-facts" title="Configuration">
    <p>
      {getCapabilities(source).join(', ') || 'No API selected'}. Timeout {source.timeoutSeconds} seconds.{' '}
      {source.maxConcurrency === null
        ? 'Parallel requests are unlimited.'
        : `At most ${source.maxConcurrency} parallel requests.`}
    </p>
  </TextCard>
)

const Edit: FC<{ source: ShownSource }> = ({ source }) => (
  <TextCard id="source-edit" title="Configuration">
    <Form name="source" class="stack" action={`/api/model-sources/${source.id}`}>
      <input type="hidden" name="expectedVersion" value={source.version} />
      <SourceFields source={source} />
      {source.models.length <= FORM_MODELS ? (
        <ModelRows models={source.models} />
      ) : (
        <p class="hint">This source has more than {FORM_MODELS} models. Edit their details with the API.</p>
      )}
      <div class="actions">
        <Submit>Save</Submit>
      </div>
    </Form>
  </TextCard>
)
