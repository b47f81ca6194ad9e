/** Creating and editing a key, and the page that shows it once with connect texts and a test. */
import type { FC } from 'hono/jsx'
import type { Titled } from '../titles.ts'
import { ButtonLink, Command, Submit } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Form, NeedsScript } from '../ui/form.tsx'
import { Connect, type ConnectProps } from './connect.tsx'
import { type KeyChoices, KeyFields } from './form.tsx'
import { type OptionalKeys, RequireKeys } from './optional.tsx'
import { KeyTestForm } from './test.tsx'
import type { ApiKey } from './words.ts'

interface FormProps {
  choices: KeyChoices
  problem: string | null
}

export interface NewKeyProps extends FormProps {
  /** Set while keys are optional and this is the first key. */
  optional: OptionalKeys | null
}

export const NewKeyPage: FC<NewKeyProps> = ({ choices, optional, problem }) => (
  <div class="page page-narrow">
    <header class="page-head">
      <h1>Create key</h1>
    </header>
    <section class="card">
      <Form name="key" class="card-body" action="/api/api-keys/" target="#main" problem={problem}>
        <KeyFields choices={choices} apiKey={null} />
        {optional && <RequireKeys whyNot={optional.whyNot} />}
        <Ending label="Create key" back="/keys" />
      </Form>
    </section>
  </div>
)

export interface EditKeyProps extends FormProps {
  apiKey: ApiKey
}

export const EditKeyPage: Titled<EditKeyProps> = ({ choices, problem, apiKey: { id, name, version }, apiKey }) => (
  <div class="page page-narrow">
    <header class="page-head">
      <h1>Edit {name}</h1>
    </header>
    <NeedsScript />
    <section class="card">
      <Form name="key" class="card-body" method="patch" action={`/api/api-keys/${id}`} problem={problem}>
        <input type="hidden" name="expectedVersion" value={version} />
        <KeyFields choices={choices} apiKey={apiKey} />
        <Ending label="Save" back={`/keys/${id}`} />
      </Form>
    </section>
  </div>
)

EditKeyPage.title = ({ apiKey }) => `Edit ${apiKey.name}`

const Ending: FC<{ label: string; back: string }> = ({ label, back }) => (
  <div class="actions">
    <Submit>{label}</Submit>
    <ButtonLink href={back}>Cancel</ButtonLink>
  </div>
)

interface ShownProps {
  id: string
  name: string
  /** The key itself. */
  key: string
}

/** The page after creating or regenerating a key. `where` gives the connection texts; only HTML answers need it. */
export const shownKeyAt =
  (where: () => Omit<ConnectProps, 'apiKey'>, isRenewed: boolean): FC<ShownProps> =>
  ({ id, name, key }) => (
    <div class="page page-narrow">
      <header class="page-head">
        <h1>{isRenewed ? `New secret for ${name}` : `${name} is ready`}</h1>
      </header>
      <section class="card card-body key-secret" aria-labelledby="shown-title" data-once>
        <h2 id="shown-title">Your key</h2>
        <p>
          <strong>Copy it now. You cannot see it again.</strong> Sluice stores only a fingerprint.
          {isRenewed && ' The previous secret no longer works.'}
        </p>
        <Command text={key} class="command-key" />
        <div class="actions">
          <ButtonLink isMain href={`/keys/${id}`}>
            Done, I copied it
          </ButtonLink>
        </div>
      </section>
      <TextCard id="connect" title="Connect a client">
        <Connect {...where()} apiKey={key} />
      </TextCard>
      <KeyTestForm id={id} />
    </div>
  )
