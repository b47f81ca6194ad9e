/** The scripts of all pages as one text; each is independent and does nothing on other pages. */
import accounts from './accounts.js' with { type: 'text' }
import app from './app.js' with { type: 'text' }
import charts from './charts.js' with { type: 'text' }
import docs from './docs.js' with { type: 'text' }
import filters from './filters.js' with { type: 'text' }
import focus from './focus.js' with { type: 'text' }
import keys from './keys.js' with { type: 'text' }
import live from './live.js' with { type: 'text' }
import logs from './logs.js' with { type: 'text' }
import measures from './measures.js' with { type: 'text' }
import newAccount from './new-account.js' with { type: 'text' }
import expected from './optimistic-badges.js' with { type: 'text' }
import palette from './palette.js' with { type: 'text' }
import settings from './settings.js' with { type: 'text' }

export const SCRIPTS = [
  app,
  live,
  charts,
  focus,
  filters,
  accounts,
  expected,
  newAccount,
  keys,
  measures,
  logs,
  docs,
  settings,
  palette,
].join('\n')
