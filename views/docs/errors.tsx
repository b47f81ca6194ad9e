/** The API errors: the two envelopes, errors shared by many routes, and the full list. */
import type { FC } from 'hono/jsx'
import { Card } from '../ui/card.tsx'
import type { Docs } from './page.tsx'
import { Codes } from './text.tsx'

export const Errors: FC<{ kinds: Docs['sharedErrors']; errors: Docs['errors'] }> = ({ kinds, errors }) => (
  <Card id="errors" title="Errors">
    <div class="card-body docs-intro">
      <p>
        Errors of the dashboard API are <code>{DASHBOARD}</code>; <code>param</code> and <code>details</code> are
        optional. Under <code>/v1</code> and <code>/backend-api</code> they are <code>{OPENAI}</code>.
      </p>
    </div>
    <dl class="docs-facts docs-kinds">
      {kinds.map(({ id, title, refusals }) => (
        <>
          <dt id={`errors-${id}`}>{title}</dt>
          <dd>
            {refusals.map((refusal) => (
              <Codes {...refusal} />
            ))}
          </dd>
        </>
      ))}
    </dl>
    <details class="docs-op">
      <summary>
        All {errors.length} errors <span class="docs-does">with status and message</span>
      </summary>
      <table class="fact-table docs-fields docs-errors">
        <tbody>
          {errors.map(({ code, status, message }) => (
            <tr>
              <th scope="row">
                <code>{code}</code>
              </th>
              <td class="number">{status}</td>
              <td>{message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  </Card>
)

const DASHBOARD = '{"error": {"code", "message", "param", "details"}}'
const OPENAI = '{"error": {"message", "type", "code", "param"}}'
