/** `/api/backups`: lists, creates and downloads backups. */
import { basename } from 'node:path'
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { actor, demand, type Principal } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { proceed } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { append } from '../model/audit/audit.ts'
import { holds, PERMISSIONS } from '../model/users/permissions.ts'
import type { Backup } from '../ops/backups.ts'

export const listBackups = createHandlers(requires('ops:write'), async (c) => c.json(await getBackups(c)))

export const mayDownload = ({ grants }: Principal): boolean =>
  PERMISSIONS.every((permission) => holds(grants, permission))

/** For the settings page, newest first. */
export const getBackups = async (c: Ctx) => {
  const { backupIntervalHours, backupKeep } = c.env.settings.current()
  const backups = (await c.env.ops.backups.list()).map(toView)
  return { backups, backupIntervalHours, backupKeep }
}

/** Takes time proportional to the database; requests continue. Deletes none. Throws what `Backups.make` does. */
export const createBackup = createHandlers(
  requires('ops:write', { audit: 'backup_created' }),
  body(z.strictObject({})),
  async (c) => {
    const made = await c.env.ops.backups.make('manual')
    const who = actor(c)
    await commit(c.env.db, (tx) =>
      append(tx, who, 'backup_created', { target: made.name, details: { bytes: made.bytes } }),
    )
    return proceed(c, toView(made), '/settings/data?done=backup_created', 201)
  },
)

/**
 * The file without the encryption key. Secrets in it are encrypted, but it includes users and conversations, so it
 * requires all permissions. Throws `permission_required`, `not_found`.
 */
export const downloadBackup = createHandlers(
  requires('security:write', { stepUp: true, audit: 'backup_downloaded' }),
  async (c) => {
    for (const permission of PERMISSIONS) demand(c.var.principal, permission)
    const path = await c.env.ops.backups.find(c.req.param('name') ?? '')
    const who = actor(c)
    await commit(c.env.db, (tx) => append(tx, who, 'backup_downloaded', { target: basename(path) }))
    return new Response(Bun.file(path), {
      headers: {
        'content-type': 'application/vnd.sqlite3',
        'content-disposition': `attachment; filename="${basename(path)}"`,
      },
    })
  },
)

const toView = ({ name, bytes, at }: Backup) => ({ name, bytes, createdAt: iso(at) })
