/** Forms: posted by any browser or in place by htmx, with errors beside them. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { type Expected, expectedBadge } from './badge.tsx'
import { IconButton, Submit } from './button.tsx'
import { CheckIcon, EyeIcon, WarningIcon } from './icons.tsx'

interface FormProps {
  /** Unique on the page, `[\w-]+`; the server answers errors into the form of this name. */
  name: string
  action: string
  method?: 'post' | 'patch' | 'put' | 'delete'
  /** The target of the answer; without it the page is refreshed. */
  target?: string
  /** A question asked before sending. */
  confirm?: string
  class?: string
  /** The last attempt's error, for browsers without scripts. */
  problem?: string | null
  /** Shown while it is sent. */
  expected?: Expected
}

/** Browsers send no other methods: without scripts such a form does nothing (`dialog` sends nothing). */
export const Form: FC<PropsWithChildren<FormProps>> = ({ name, action, method = 'post', target, problem, ...rest }) => (
  <form
    id={`form-${name}`}
    class={method === 'post' ? rest.class : `${rest.class ?? ''} sent-by-script`.trim()}
    method={method === 'post' ? 'post' : 'dialog'}
    action={action}
    {...{ [`hx-${method}`]: action }}
    hx-target={target}
    hx-swap={target ? 'innerHTML' : 'none'}
    hx-confirm={rest.confirm}
    hx-disable="find [type=submit]"
    {...(rest.expected && expectedBadge(rest.expected))}
  >
    {rest.children}
    {rest.confirm && method === 'post' && <ConfirmQuestion question={rest.confirm} />}
    <div id={`form-${name}-problem`} class="form-problem" role="alert">
      {problem && <Problem text={problem} />}
    </div>
  </form>
)

/**
 * Without scripts, a required checkbox asks for confirmation. The script removes it: in a `noscript` it would appear
 * when the page is swapped.
 */
const ConfirmQuestion: FC<{ question: string }> = ({ question }) => (
  <label class="check without-script asked-first">
    <input type="checkbox" required />
    <span>{question}</span>
  </label>
)

interface ActionProps extends FormProps {
  label: string
  values?: Readonly<Record<string, string>>
  isRisky?: boolean
}

/** A form consisting of a button and what is next to it. */
export const Action: FC<PropsWithChildren<ActionProps>> = ({ label, values = {}, isRisky, children, ...form }) => (
  <Form
    {...form}
    class={form.method && form.method !== 'post' ? `${form.class ?? ''} needs-script`.trim() : form.class}
  >
    {Object.entries(values).map(([name, value]) => (
      <input type="hidden" name={name} value={value} />
    ))}
    <Submit isPlain isRisky={isRisky}>
      {label}
    </Submit>
    {children}
  </Form>
)

/** The error below a form. */
export const Problem: FC<PropsWithChildren<{ text: string }>> = ({ text, children }) => (
  <p class="problem-line">
    <WarningIcon />
    <span>
      {text}
      {children}
    </span>
  </p>
)

/** Keeps the form: after signing in in another tab, this one has its cookie too. */
export const SignedOut: FC = () => (
  <Problem text="You are signed out. ">
    <a href="/login" target="_blank" rel="noopener">
      Sign in in another tab
    </a>
    , then submit this again.
  </Problem>
)

interface FieldProps {
  label: string
  name: string
  type?: 'text' | 'password' | 'email' | 'number'
  value?: string | null
  hint?: string
  autocomplete?: string
  required?: boolean
  autofocus?: boolean
  minlength?: number
  maxlength?: number
  /** Bounds of a number. */
  min?: number
  max?: number
  step?: 'any'
  placeholder?: string
  /** Id of the `datalist` with suggestions. */
  list?: string
  class?: string
}

export const Field: FC<FieldProps> = (props) =>
  props.type === 'password' ? <PasswordField {...props} /> : <PlainField {...props} />

const PlainField: FC<FieldProps> = ({ label, hint, value, class: name, type = 'text', ...input }) => (
  <label class={name ? `field ${name}` : 'field'}>
    <span class="field-label">{label}</span>
    <input
      type={type}
      value={value ?? undefined}
      autocapitalize={type === 'text' ? 'none' : undefined}
      spellcheck={type === 'text' ? false : undefined}
      {...input}
    />
    {hint && <span class="hint">{hint}</span>}
  </label>
)

/** With a button that shows the password, if scripts run. It is outside the label, whose text names the field. */
const PasswordField: FC<FieldProps & { strength?: string }> = ({ label, hint, strength, ...input }) => (
  <div class="field password-field">
    <PlainField label={label} {...input} />
    <IconButton action="show-password" label="Show password" icon={EyeIcon} />
    {hint && (
      <span class="hint" data-strength={strength} aria-live={strength && 'polite'}>
        {hint}
      </span>
    )}
  </div>
)

/** Texts below a new password; the script chooses one. */
const STRENGTHS = ['Weak. Add more words.', 'Fair. Longer is stronger.', 'Strong.']

/** At least eight characters; the name is included for password managers and not sent. */
export const NewPassword: FC<{ name?: string; label?: string; username?: string; autofocus?: boolean }> = ({
  name = 'password',
  label = 'Password',
  username,
  autofocus,
}) => (
  <>
    {username !== undefined && <input type="text" value={username} autocomplete="username" hidden readonly />}
    <PasswordField
      label={label}
      name={name}
      type="password"
      autocomplete="new-password"
      minlength={8}
      maxlength={1024}
      hint="At least 8 characters. Several random words are easy to remember and hard to guess."
      strength={STRENGTHS.join('|')}
      autofocus={autofocus}
      required
    />
  </>
)

interface CodeProps {
  label?: string
  autofocus?: boolean
  /** Accepts recovery codes too, for rarely used forms: phones then show a full keyboard instead of digits. */
  takesRecoveryCodes?: boolean
}

/** Six digits, filled in by phones and password managers. */
export const CodeField: FC<CodeProps> = ({
  autofocus,
  takesRecoveryCodes = false,
  label = 'Code from your authenticator app',
}) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input
      class={takesRecoveryCodes ? undefined : 'code-input'}
      name="code"
      autocomplete="one-time-code"
      placeholder="000000"
      autofocus={autofocus}
      required
      {...(takesRecoveryCodes
        ? { maxlength: MAX_CODE_CHARS, autocapitalize: 'none', spellcheck: false }
        : { inputmode: 'numeric', pattern: '[0-9 ]{6,7}', maxlength: 7, title: 'Six digits' })}
    />
  </label>
)

const MAX_CODE_CHARS = 32

export const RecoveryCodeField: FC = () => (
  <Field
    label="Recovery code"
    name="code"
    autocomplete="off"
    maxlength={MAX_CODE_CHARS}
    placeholder="xxxx-xxxx-xxxx-xxxx"
    required
  />
)

interface CheckProps {
  label: string
  name: string
  isOn: boolean
  hint?: string
}

/** Also sends off, because forms omit unchecked boxes. */
export const Check: FC<CheckProps> = ({ label, name, isOn, hint }) => (
  <label class="check">
    <input type="hidden" name={name} value="false" />
    <input type="checkbox" name={name} value="true" checked={isOn} />
    <span>
      {label}
      {hint && <span class="hint">{hint}</span>}
    </span>
  </label>
)

/** The same as a switch. Its children show while it is off. */
export const Switch: FC<PropsWithChildren<CheckProps>> = ({ label, name, isOn, hint, children }) => (
  <div class="switched">
    <label class="check">
      <input type="hidden" name={name} value="false" />
      <input class="switch" type="checkbox" name={name} value="true" checked={isOn} />
      <span>
        {label}
        {hint && <span class="hint">{hint}</span>}
      </span>
    </label>
    <div class="switched-off stack">{children}</div>
  </div>
)

/** The result of the last change. */
export const Done: FC<{ text: string | null }> = ({ text }) =>
  text === null ? null : (
    <p class="done" role="status">
      <CheckIcon />
      <span>{text}</span>
    </p>
  )

interface OutcomeProps {
  done: string | null
  problem: string | null
  /** Whether the result is shown elsewhere on the page. */
  isSaid?: boolean
}

/** The result of the last change, above a page with forms. */
export const Outcome: FC<OutcomeProps> = ({ done, problem, isSaid = false }) => (
  <>
    {!isSaid && <Done text={done} />}
    {problem && (
      <p class="note note-bad" role="alert">
        {problem}
      </p>
    )}
  </>
)

/** For features that need scripts, because plain forms lack the methods. */
export const NeedsScript: FC = () => (
  <noscript>
    <p class="note">Some changes on this page need JavaScript. Without it, use the sluice command.</p>
  </noscript>
)
