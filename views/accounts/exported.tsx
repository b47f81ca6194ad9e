/** The exported credentials, shown once in the dialog of the page, to copy or save. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Command } from '../ui/button.tsx'

interface ExportedProps {
  filename: string
  text: string
}

export const ExportedPage: FC<ExportedProps> = ({ filename, text }) => (
  <div class="panel">
    <h2>{filename}</h2>
    <p class="muted">Treat this file like a password. The export was recorded in the audit log.</p>
    <Command text={text} class="exported" isLong />
    <div class="actions">
      <ButtonLink isMain href={`data:application/json,${encodeURIComponent(text)}`} download={filename} autofocus>
        Save file
      </ButtonLink>
      <button class="button button-plain" type="button" data-action="close">
        Close
      </button>
    </div>
  </div>
)
