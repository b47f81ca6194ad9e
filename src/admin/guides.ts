/** `/docs`: the user guides of this repository as pages. */
import type { FC } from 'hono/jsx'
import alerts from '../../docs/alerts.md' with { type: 'text' }
import claudeCode from '../../docs/claude-code.md' with { type: 'text' }
import clients from '../../docs/clients.md' with { type: 'text' }
import codexLb from '../../docs/codex-lb.md' with { type: 'text' }
import operating from '../../docs/operating.md' with { type: 'text' }
import postgresql from '../../docs/postgresql.md' with { type: 'text' }
import reverseProxies from '../../docs/reverse-proxies.md' with { type: 'text' }
import scaling from '../../docs/scaling.md' with { type: 'text' }
import security from '../../docs/security.md' with { type: 'text' }
import { type Guide, type GuideEntry, GuidePage, GuidesPage } from '../../views/docs/guides.tsx'
import { AppError } from '../errors.ts'
import { signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import { renderMarkdown } from '../lib/markdown.ts'

/** In the order in which a new user needs them. */
const SOURCES: readonly (GuideEntry & { text: string })[] = [
  {
    slug: 'clients',
    title: 'Connect a client',
    about: 'Codex CLI, IDE extension, OpenAI SDKs, OpenCode, web apps, curl.',
    text: clients,
  },
  {
    slug: 'claude-code',
    title: 'Claude Code',
    about: 'Connect it, choose models, and what differs from Anthropic.',
    text: claudeCode,
  },
  {
    slug: 'operating',
    title: 'Operating Sluice',
    about: 'Install, configure, invite users, back up, fix problems.',
    text: operating,
  },
  {
    slug: 'codex-lb',
    title: 'Coming from codex-lb',
    about: 'Move accounts, keys and settings here, also from CLIProxyAPI and others.',
    text: codexLb,
  },
  {
    slug: 'alerts',
    title: 'Alerts',
    about: 'E-mail, ntfy, Discord, Slack, Telegram, Gotify, webhooks, Uptime Kuma.',
    text: alerts,
  },
  {
    slug: 'reverse-proxies',
    title: 'Behind a reverse proxy',
    about: 'nginx, Nginx Proxy Manager, Caddy, Traefik, and sign-in by a proxy.',
    text: reverseProxies,
  },
  {
    slug: 'scaling',
    title: 'More processes and more nodes',
    about: 'Several processes, several nodes on PostgreSQL, load balancers.',
    text: scaling,
  },
  {
    slug: 'postgresql',
    title: 'PostgreSQL',
    about: 'When to use it, how to move there and back, backups.',
    text: postgresql,
  },
  {
    slug: 'security',
    title: 'Security',
    about: 'What is stored, who sees it, how to expose Sluice, what is not protected.',
    text: security,
  },
]

const ENTRIES: readonly GuideEntry[] = SOURCES.map(({ slug, title, about }) => ({ slug, title, about }))

/** `GET /docs`. */
export const showGuides = createHandlers(signedIn(), (c) => reply(c, { guides: ENTRIES }, GuidesPage))

/** `GET /docs/:guide`. */
export const showGuide = createHandlers(signedIn(), (c) =>
  reply(c, guideCalled(c.req.param('guide') ?? ''), GuidePage as FC<Guide>),
)

const rendered = new Map<string, Guide>()

const guideCalled = (slug: string): Guide => {
  const known = rendered.get(slug)
  if (known) return known
  const source = SOURCES.find((one) => one.slug === slug)
  if (!source) throw new AppError('not_found')
  const guide = { ...renderMarkdown(source.text, getPage), slug, guides: ENTRIES }
  rendered.set(slug, guide)
  return guide
}

/** `operating.md#users` is `/docs/operating#users`. */
const getPage = (href: string): string => href.replace(/^([\w-]+)\.md(?=#|$)/, '/docs/$1')
