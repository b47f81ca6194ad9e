/** The recovery codes of a user, shown once: after setting up two-factor, and when they are replaced. */
import type { Titled } from './titles.ts'
import { ButtonLink, Command } from './ui/button.tsx'
import { CenteredCard } from './ui/centered-card.tsx'

interface ShownCodes {
  status: string
  recoveryCodes: readonly string[]
}

/** `isNew`: two-factor was just turned on; otherwise the codes replace earlier ones. */
export const recoveryCodesAt = ({ isNew, returnTo }: { isNew: boolean; returnTo: string }): Titled<ShownCodes> => {
  const Codes: Titled<ShownCodes> = ({ recoveryCodes }) => (
    <CenteredCard title="Save your recovery codes">
      <p>
        {isNew ? 'Two-factor authentication is on. ' : 'Your previous recovery codes no longer work. '}
        If you lose your authenticator, sign in with one of these codes. Each code works once.
      </p>
      <Command text={recoveryCodes.join('\n')} />
      <p data-once>
        <strong>Copy them now. You cannot see them again.</strong>
      </p>
      <div class="actions">
        <ButtonLink isMain href={returnTo}>
          I saved the codes
        </ButtonLink>
      </div>
    </CenteredCard>
  )
  Codes.title = () => 'Recovery codes'
  return Codes
}
