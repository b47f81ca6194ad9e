/** Sends alerts as e-mail. */
import { isIP } from 'node:net'
import { createTransport } from 'nodemailer'
import type { SmtpTarget } from '../../model/alerts/channel-input.ts'
import type { AlertMessage } from '../../model/alerts/messages.ts'
import { plain } from './requests.ts'

interface Mail {
  message: AlertMessage
  /** The IP address of the server. */
  address: string
  timeoutMs: number
  signal: AbortSignal
}

/** Sends a plain text e-mail. Rejects with the error of the connection or server, or the reason of the signal. */
export const sendMail = async (target: SmtpTarget, { message, address, timeoutMs, signal }: Mail): Promise<void> => {
  const { host, port, tls, user, password, from, to } = target
  const transport = createTransport({
    host: address,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    tls: getTlsOptions(host),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(user && { auth: { user, pass: password ?? '' } }),
  })
  try {
    await transport.sendMail(toMail(message, { from, to, signal }))
  } catch (err) {
    signal.throwIfAborted()
    throw err
  }
}

/** The certificate is checked against the name, not the resolved address. TLS does not allow an address as the name. */
const getTlsOptions = (host: string): { servername?: string } => {
  const name = host.replace(/^\[|\]$/g, '')
  return isIP(name) ? {} : { servername: name }
}

/** The message ID contains the delivery ID, so that mail programs show a mail only once if it is sent twice. */
const toMail = (
  message: AlertMessage,
  { from, to, signal }: Pick<SmtpTarget, 'from' | 'to'> & { signal: AbortSignal },
) => ({
  from: { name: 'Sluice', address: from },
  to: [...to],
  subject: `[${message.install}] ${message.title}`,
  text: `${plain(message)}\n`,
  messageId: `<${message.id}.${message.edge}@sluice>`,
  headers: { 'Auto-Submitted': 'auto-generated' },
  signal, // closes the connection when it is aborted
})
