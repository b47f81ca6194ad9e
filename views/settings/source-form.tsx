/** The fields of a model source and of its models. */
import type { FC } from 'hono/jsx'
import type { ShownSource } from '../../src/model/sources/source-view.ts'
import { Check, Field, Switch } from '../ui/form.tsx'
import { CAPABILITY_NAMES, priceText } from './source-words.ts'

/** Longer lists are edited with the API: each model has many fields. */
export const FORM_MODELS = 100
/** Rows for models added by name. */
const EMPTY_ROWS = 2

type Model = ShownSource['models'][number]

export const SourceFields: FC<{ source: ShownSource | null }> = ({ source }) => (
  <>
    <Field label="Name" name="name" value={source?.name} maxlength={128} autocomplete="off" required />
    <Field
      label="Base URL"
      name="baseUrl"
      value={source?.baseUrl}
      maxlength={2048}
      autocomplete="off"
      placeholder="http://localhost:11434/v1"
      hint="Most servers need /v1 at its end. Private addresses are allowed."
      required
    />
    <Field
      label="API key"
      name="apiKey"
      type="password"
      maxlength={4096}
      autocomplete="off"
      hint={
        source?.hasApiKey
          ? 'A key is stored. Leave empty to keep it; a base URL on another server needs it again.'
          : 'Leave empty if the server needs none. Stored encrypted.'
      }
    />
    {source?.hasApiKey && <Check label="Remove the stored key" name="removeApiKey" isOn={false} />}
    <fieldset class="ticks">
      <legend class="field-label">APIs of the server</legend>
      <Check
        label={CAPABILITY_NAMES.chat}
        name="supportsChatCompletions"
        isOn={source?.supportsChatCompletions ?? true}
      />
      <Check
        label={CAPABILITY_NAMES.responses}
        name="supportsResponses"
        hint="Needed by the Codex CLI."
        isOn={source?.supportsResponses ?? false}
      />
      <Check
        label={CAPABILITY_NAMES.audio}
        name="supportsAudioTranscriptions"
        isOn={source?.supportsAudioTranscriptions ?? false}
      />
      <Check label={CAPABILITY_NAMES.embeddings} name="supportsEmbeddings" isOn={source?.supportsEmbeddings ?? false} />
    </fieldset>
    <div class="field-row">
      <Field
        label="Timeout in seconds"
        name="timeoutSeconds"
        type="number"
        min={1}
        max={3600}
        value={String(source?.timeoutSeconds ?? 600)}
        hint="Until an answer starts, for a whole document, and for each silence in a stream."
      />
      <Field
        label="Parallel requests"
        name="maxConcurrency"
        type="number"
        min={0}
        max={10_000}
        value={source?.maxConcurrency ? String(source.maxConcurrency) : ''}
        placeholder="Unlimited"
        hint="Leave empty for no limit."
      />
    </div>
    <Switch
      label="Enabled"
      name="isEnabled"
      hint="When off, the source is not used."
      isOn={source?.isEnabled ?? true}
    />
  </>
)

export const ModelRows: FC<{ models: readonly Model[] }> = ({ models }) => (
  <fieldset class="source-model-rows">
    <legend class="field-label">Models</legend>
    {models.map((model, index) => (
      <details class="source-model">
        <summary>
          <code>{model.model}</code> <span class="muted small">{priceText(model) || 'no price'}</span>
        </summary>
        <ModelFields model={model} prefix={`models.${index}`} />
        <Check label="Remove from the list" name={`models.${index}.remove`} isOn={false} />
      </details>
    ))}
    {Array.from({ length: EMPTY_ROWS }, (_, index) => (
      <details class="source-model">
        <summary>{index === 0 ? 'Add a model by name' : 'Add another model'}</summary>
        <ModelFields model={null} prefix={`models.${models.length + index}`} />
      </details>
    ))}
  </fieldset>
)

const ModelFields: FC<{ model: Model | null; prefix: string }> = ({ model, prefix }) => (
  <div class="stack">
    <div class="field-row">
      <Field label="Name clients send" name={`${prefix}.model`} value={model?.model} maxlength={255} />
      <Field label="Display name" name={`${prefix}.displayName`} value={model?.displayName} maxlength={255} />
    </div>
    <div class="field-row">
      <Amount label="Context window" name={`${prefix}.contextWindow`} value={model?.contextWindow} />
      <Amount label="Output tokens at most" name={`${prefix}.maxOutputTokens`} value={model?.maxOutputTokens} />
    </div>
    <div class="field-row">
      <Amount label="Input, $ per 1M tokens" name={`${prefix}.inputPer1m`} value={model?.inputPer1m} />
      <Amount label="Cached input, $ per 1M" name={`${prefix}.cachedInputPer1m`} value={model?.cachedInputPer1m} />
    </div>
    <div class="field-row">
      <Amount label="Output, $ per 1M tokens" name={`${prefix}.outputPer1m`} value={model?.outputPer1m} />
      <Amount label="Audio, $ per minute" name={`${prefix}.audioPerMinute`} value={model?.audioPerMinute} />
    </div>
    <Check label="Streaming" name={`${prefix}.supportsStreaming`} isOn={model?.supportsStreaming ?? true} />
    <Check label="Tools" name={`${prefix}.supportsTools`} isOn={model?.supportsTools ?? false} />
    <Check label="Images" name={`${prefix}.supportsVision`} isOn={model?.supportsVision ?? false} />
    <Check label="Offer this model" name={`${prefix}.isEnabled`} isOn={model?.isEnabled ?? true} />
    <Field
      label="Metadata (JSON object)"
      name={`${prefix}.rawMetadataJson`}
      value={model?.rawMetadataJson}
      maxlength={16_384}
    />
  </div>
)

/** A text field, because a browser's number field needs the right step for prices. */
const Amount: FC<{ label: string; name: string; value: number | null | undefined }> = ({ label, name, value }) => (
  <Field label={label} name={name} value={value == null ? null : String(value)} maxlength={16} />
)
