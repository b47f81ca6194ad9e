/** The Users page inside the settings frame. */
import type { FC } from 'hono/jsx'
import { AccessPage, type AccessProps } from '../people/page.tsx'
import { type Frame, Framed } from './frame.tsx'

export const AccessTab: FC<AccessProps & { frame: Frame }> = ({ frame, ...access }) => (
  <Framed frame={frame}>
    <AccessPage {...access} />
  </Framed>
)
