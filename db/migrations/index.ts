/** Every migration, embedded as text, because the compiled binary has no folder to read them from. */
import type { Migration } from '../migration.ts'
import init from './0000_init.sql' with { type: 'text' }
import people from './0001_people.sql' with { type: 'text' }
import ownEmail from './0002_own_email.sql' with { type: 'text' }
import dashboard from './0003_dashboard.sql' with { type: 'text' }
import leftovers from './0004_leftovers.sql' with { type: 'text' }
import accountTotals from './0005_account_totals.sql' with { type: 'text' }
import requestSpans from './0006_request_spans.sql' with { type: 'text' }
import hoursInOrder from './0007_hours_in_order.sql' with { type: 'text' }
import accountSeat from './0008_account_seat.sql' with { type: 'text' }
import paidCredits from './0009_paid_credits.sql' with { type: 'text' }
import unrecognizedKey from './0010_unrecognized_key.sql' with { type: 'text' }
import rejectedClients from './0011_rejected_clients.sql' with { type: 'text' }
import recoveryCodes from './0012_recovery_codes.sql' with { type: 'text' }
import clientHours from './0013_client_hours.sql' with { type: 'text' }
import windowStarts from './0014_window_starts.sql' with { type: 'text' }
import liveCalls from './0015_live_calls.sql' with { type: 'text' }
import accountSwitches from './0016_account_switches.sql' with { type: 'text' }
import modelSources from './0017_model_sources.sql' with { type: 'text' }
import keyPage from './0018_key_page.sql' with { type: 'text' }
import egress from './0019_egress.sql' with { type: 'text' }
import automations from './0020_automations.sql' with { type: 'text' }
import plannerDecisions from './0021_planner_decisions.sql' with { type: 'text' }
import requestDigests from './0022_request_digests.sql' with { type: 'text' }
import plannerAccount from './0023_planner_account.sql' with { type: 'text' }
import limitLeases from './0024_limit_leases.sql' with { type: 'text' }
import streamSlots from './0025_stream_slots.sql' with { type: 'text' }
import alerts from './0026_alerts.sql' with { type: 'text' }
import meterReadings from './0027_meter_readings.sql' with { type: 'text' }
import shares from './0028_shares.sql' with { type: 'text' }
import claudeModels from './0029_claude_models.sql' with { type: 'text' }
import moves from './0030_moves.sql' with { type: 'text' }
import movedTokens from './0031_moved_tokens.sql' with { type: 'text' }

export const MIGRATIONS: readonly Migration[] = [
  { name: '0000_init', sql: init },
  { name: '0001_people', sql: people },
  { name: '0002_own_email', sql: ownEmail },
  { name: '0003_dashboard', sql: dashboard },
  { name: '0004_leftovers', sql: leftovers },
  { name: '0005_account_totals', sql: accountTotals },
  { name: '0006_request_spans', sql: requestSpans },
  { name: '0007_hours_in_order', sql: hoursInOrder },
  { name: '0008_account_seat', sql: accountSeat },
  { name: '0009_paid_credits', sql: paidCredits },
  { name: '0010_unrecognized_key', sql: unrecognizedKey },
  { name: '0011_rejected_clients', sql: rejectedClients },
  { name: '0012_recovery_codes', sql: recoveryCodes },
  { name: '0013_client_hours', sql: clientHours },
  { name: '0014_window_starts', sql: windowStarts },
  { name: '0015_live_calls', sql: liveCalls },
  { name: '0016_account_switches', sql: accountSwitches },
  { name: '0017_model_sources', sql: modelSources },
  { name: '0018_key_page', sql: keyPage },
  { name: '0019_egress', sql: egress },
  { name: '0020_automations', sql: automations },
  { name: '0021_planner_decisions', sql: plannerDecisions },
  { name: '0022_request_digests', sql: requestDigests },
  { name: '0023_planner_account', sql: plannerAccount },
  { name: '0024_limit_leases', sql: limitLeases },
  { name: '0025_stream_slots', sql: streamSlots },
  { name: '0026_alerts', sql: alerts },
  { name: '0027_meter_readings', sql: meterReadings },
  { name: '0028_shares', sql: shares },
  { name: '0029_claude_models', sql: claudeModels },
  { name: '0030_moves', sql: moves },
  { name: '0031_moved_tokens', sql: movedTokens },
]
