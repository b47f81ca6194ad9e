/** The credentials of an account, shown once in the dialog of the page: to copy, or to save as the file programs expect. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Command } from '../ui/button.tsx'

interface ExportedProps {
  filename: string
  text: string
}

export const ExportedPage: FC<ExportedProps> = ({ filename, text }) => (
  <div class="panel">
    <h2>{filename}</h2>
    <p class="muted">Keep it as you would keep a password. This was written to the audit log.</p>
    <Command text={text} class="exported" isLong />
    <div class="actions">
      <ButtonLink isMain href={`data:application/json,${encodeURIComponent(text)}`} download={filename} autofocus>
        Save as a file
      </ButtonLink>
      <button class="button button-plain" type="button" data-action="close">
        Close
      </button>
    </div>
  </div>
)
