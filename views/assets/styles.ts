/** The styles of all pages as one text: colours and plain elements first, then shared parts, then single pages. */
import account from './account.css' with { type: 'text' }
import accounts from './accounts.css' with { type: 'text' }
import audit from './audit.css' with { type: 'text' }
import base from './base.css' with { type: 'text' }
import cards from './cards.css' with { type: 'text' }
import charts from './charts.css' with { type: 'text' }
import docs from './docs.css' with { type: 'text' }
import doctor from './doctor.css' with { type: 'text' }
import entrance from './entrance.css' with { type: 'text' }
import forcedColors from './forced-colors.css' with { type: 'text' }
import forms from './forms.css' with { type: 'text' }
import keys from './keys.css' with { type: 'text' }
import logs from './logs.css' with { type: 'text' }
import managed from './managed.css' with { type: 'text' }
import messages from './messages.css' with { type: 'text' }
import newAccount from './new-account.css' with { type: 'text' }
import overview from './overview.css' with { type: 'text' }
import people from './people.css' with { type: 'text' }
import print from './print.css' with { type: 'text' }
import reports from './reports.css' with { type: 'text' }
import request from './request.css' with { type: 'text' }
import settings from './settings.css' with { type: 'text' }
import shell from './shell.css' with { type: 'text' }
import tables from './tables.css' with { type: 'text' }
import tokens from './tokens.css' with { type: 'text' }

const SHARED = [tokens, base, shell, messages, cards, forms, tables, charts]
const PAGES = [
  entrance,
  overview,
  accounts,
  account,
  newAccount,
  keys,
  logs,
  request,
  reports,
  settings,
  managed,
  audit,
  people,
  doctor,
  docs,
]

export const STYLES = [...SHARED, ...PAGES, forcedColors, print].join('\n')
