/** Host and port of a URL. */

export interface Target {
  /** A name or an address, without brackets. */
  host: string
  port: number
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443 }
const SOCKS_PORT = 1080

/** Host and port of a URL, also of a proxy. */
export const toEndpoint = ({ hostname, port, protocol }: URL): Target => ({
  host: hostname.replace(/^\[|\]$/g, ''),
  port: Number(port) || (DEFAULT_PORTS[protocol] ?? SOCKS_PORT),
})
