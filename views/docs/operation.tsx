/** One operation as a fold: its name outside; access, input and answers inside. */
import type { FC } from 'hono/jsx'
import { Command } from '../ui/button.tsx'
import { Fact } from '../ui/fact.tsx'
import { Codes, type Refusal, Text } from './text.tsx'

/** Errors that many operations share. */
export type RefusalKind =
  | 'session'
  | 'account'
  | 'confirmation'
  | 'client'
  | 'capability'
  | 'site'
  | 'body'
  | 'query'
  | 'turn'

export interface Name {
  method: string
  path: string
}

export interface ShownOperation {
  id: string
  names: Name[]
  does: string
  answer: string | null
  status: number | null
  who: string
  /** How it treats the restricted pool's header; null: not a model route. */
  capability: 'refuse' | 'narrow' | 'local' | null
  auditEvent: string | null
  path: Field[]
  query: Field[]
  body: Field[]
  /** Describes a body without fields. */
  document: string | null
  kinds: RefusalKind[]
  refusals: Refusal[]
  curl: string | null
}

export interface Field {
  /** For a field in a list of objects: `limits[].maxValue`. */
  name: string
  /** `string ≤ 128`, `"a" | "b" | null`, `integer 1…200`. */
  type: string
  isRequired: boolean
  /** Text with code between backticks. */
  meaning: string
  /** As JSON; null: none. */
  preset: string | null
}

interface OperationProps {
  operation: ShownOperation
  /** Does not match the search. */
  isHidden: boolean
  isOpen: boolean
}

export const Operation: FC<OperationProps> = ({ operation, isHidden, isOpen }) => {
  const [main, ...others] = operation.names
  return (
    <details class="docs-op" open={isOpen && !isHidden} hidden={isHidden}>
      <summary>
        <b class="docs-method">{main?.method}</b> <code>{main?.path}</code>{' '}
        <span class="docs-does">
          <Text text={operation.does} />
        </span>
      </summary>
      <div class="docs-body" id={operation.id}>
        {others.length > 0 && (
          <p>
            Also{' '}
            {others.map(({ method, path }, index) => (
              <>
                {index > 0 && ', '}
                <code>
                  {method} {path}
                </code>
              </>
            ))}
          </p>
        )}
        <Facts {...operation} />
        <Fields title="In the path" fields={operation.path} />
        <Fields title="Parameters" fields={operation.query} />
        <Fields title="Body" fields={operation.body} />
        {operation.curl !== null && <Command text={operation.curl} />}
      </div>
    </details>
  )
}

const CAPABILITIES = {
  refuse: 'Requests for the restricted pool are rejected.',
  narrow: 'Requests for the restricted pool are only served by that pool.',
  local: 'Uses no account, so the restricted pool does not matter.',
} as const

const Facts: FC<ShownOperation> = ({ who, answer, status, document, auditEvent, capability, kinds, refusals }) => (
  <dl class="docs-facts">
    <Fact name="Access">
      <Text text={who} />
      {capability && ` ${CAPABILITIES[capability]}`}
    </Fact>
    {document !== null && (
      <Fact name="Body">
        <Text text={document} />
      </Fact>
    )}
    {(answer !== null || status !== null) && (
      <Fact name="Response">
        {status !== null && <b>{status} </b>}
        {answer !== null && <Text text={answer} />}
      </Fact>
    )}
    {auditEvent !== null && (
      <Fact name="Audit event">
        <code>{auditEvent}</code>
      </Fact>
    )}
    {(kinds.length > 0 || refusals.length > 0) && (
      <Fact name="Errors">
        <Refusals refusals={refusals} kinds={kinds} />
      </Fact>
    )}
  </dl>
)

const KIND_WORDS = {
  session: 'without a session',
  account: 'without a user',
  confirmation: 'without a confirmation',
  client: 'without a key',
  capability: 'restricted pool',
  site: 'from another site',
  body: 'an invalid body',
  query: 'invalid parameters',
  turn: 'a failed request',
} as const

const Refusals: FC<Pick<ShownOperation, 'kinds' | 'refusals'>> = ({ kinds, refusals }) => (
  <>
    {refusals.map((refusal) => (
      <Codes {...refusal} />
    ))}
    {kinds.map((kind, index) => (
      <>
        {(index > 0 || refusals.length > 0) && ' · '}
        <a href={`#errors-${kind}`}>{KIND_WORDS[kind]}</a>
      </>
    ))}
  </>
)

const Fields: FC<{ title: string; fields: readonly Field[] }> = ({ title, fields }) =>
  fields.length === 0 ? null : (
    <table class="fact-table docs-fields">
      <caption>{title}</caption>
      <tbody>
        {fields.map(({ name, type, isRequired, meaning, preset }) => (
          <tr>
            <th scope="row">
              <code>{name}</code>
              {isRequired && <span class="docs-required"> required</span>}
            </th>
            <td>
              <Text text={meaning} /> <code class="muted">{type}</code>
              {preset !== null && (
                <span class="muted">
                  , default <code>{preset}</code>
                </span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
