/** "Connect a client": one tab per client with text to paste. The tabs are radio buttons, so they work without script. */
import type { FC } from 'hono/jsx'
import { Command } from '../ui/button.tsx'
import { type Connection, snippets } from './snippets.ts'

export interface ConnectProps extends Omit<Connection, 'key'> {
  /** The key itself, or its placeholder. */
  apiKey: string
  /** The address comes only from the Host header: the script replaces it with the one in the address bar. */
  isGuess: boolean
}

export const Connect: FC<ConnectProps> = ({ apiKey, isGuess, ...connection }) => {
  const clients = snippets({ ...connection, key: apiKey })
  return (
    <fieldset class="client-tabs" data-guess={isGuess ? connection.baseUrl : undefined}>
      <legend class="sr">Client</legend>
      <div class="client-tab-list">
        {clients.map(({ id, label }, index) => (
          <label class="client-tab">
            <input type="radio" name="client" value={id} checked={index === 0} />
            <span>{label}</span>
          </label>
        ))}
      </div>
      {clients.map(({ id, parts, wrongKey }) => (
        <div class="client-panel" data-client={id}>
          {parts.map(({ where, text }) => (
            <>
              <p>
                <Sentence text={where} />
              </p>
              <Command text={text} />
            </>
          ))}
          <p>
            <Sentence text={wrongKey} />
          </p>
        </div>
      ))}
    </fieldset>
  )
}

const Sentence: FC<{ text: string }> = ({ text }) => (
  <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>
)
