/** The models that a source lists, with checkboxes; nothing is stored until you add them. */
import type { FC } from 'hono/jsx'
import type { ShownSource } from '../../src/model/sources/source-view.ts'
import type { ListedModel } from '../../src/upstream/source-models.ts'
import type { Titled } from '../titles.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Form } from '../ui/form.tsx'
import { type Frame, SettingsFrame } from './frame.tsx'
import { priceText } from './source-words.ts'

interface Proposed extends ListedModel {
  rawMetadataJson: null
  /** The source has it already. */
  isListed: boolean
}

export interface Discovered {
  frame: Frame
  source: Pick<ShownSource, 'id' | 'name'>
  durationMs: number
  models: readonly Proposed[]
}

/** More would exceed the page size limit; the API returns all. */
const MAX_SHOWN = 200

export const DiscoverPage: Titled<Discovered> = ({ frame, source, models, durationMs }) => {
  const added = models.filter(({ isListed }) => !isListed)
  return (
    <SettingsFrame frame={frame} title={`Models of ${source.name}`}>
      <Card id="discovered" title="Models" count={models.length}>
        <div class="card-body">
          <p>
            {models.length === 0
              ? 'The source lists no models. Add them by name on its page.'
              : `The source listed ${countText(models.length)} ${models.length === 1 ? 'model' : 'models'} in ${countText(durationMs)} ms. Check the ones you want to offer. You can change their details afterwards.`}
          </p>
        </div>
        <Form name="discovered" class="card-part" action={`/api/model-sources/${source.id}`}>
          <ul class="rows source-models">
            {added.slice(0, MAX_SHOWN).map((model) => (
              <li class="row">
                <Proposal {...model} isChecked={added.length <= FEW} />
              </li>
            ))}
          </ul>
          {added.length > MAX_SHOWN && <p class="hint">The first {MAX_SHOWN} are shown. Add others by name.</p>}
          {models.length > 0 && added.length === 0 && <p>All of them are on the list already.</p>}
          <div class="actions">
            {added.length > 0 && <Submit>Add checked models</Submit>}
            <ButtonLink href={`/settings/sources/${source.id}`}>Back to {source.name}</ButtonLink>
          </div>
        </Form>
      </Card>
    </SettingsFrame>
  )
}

/** All of a few are checked; of many you choose. */
const FEW = 12

DiscoverPage.title = ({ source }) => `Models of ${source.name}`

const Proposal: FC<Proposed & { isChecked: boolean }> = ({ isListed, isChecked, ...model }) => (
  <label class="check">
    <input
      type="checkbox"
      name="add"
      value={JSON.stringify({ ...model, rawMetadataJson: undefined })}
      checked={isChecked}
    />
    <span>
      <code>{model.model}</code>
      <span class="hint">{getFacts(model)}</span>
    </span>
  </label>
)

const getFacts = (model: Omit<Proposed, 'isListed'>): string =>
  [
    model.contextWindow ? `${countText(model.contextWindow)} tokens of context` : null,
    model.supportsTools ? 'tools' : null,
    model.supportsVision ? 'images' : null,
    priceText(model),
  ]
    .filter(Boolean)
    .join(' · ')
