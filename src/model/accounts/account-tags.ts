/** Tags of accounts: labels to filter by, and to assign accounts to keys. */
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import type { Db, Tx } from '../../../db/commit.ts'
import { accountTags } from '../../../db/schema/accounts.ts'

const MAX_TAGS = 20
const MAX_TAG_CHARS = 40
/** Commas separate tags, so that one text field can hold several. */
const MAX_TEXT_CHARS = MAX_TAGS * (MAX_TAG_CHARS + 2)

const parts = (text: string): string[] => text.split(',').flatMap((part) => part.trim() || [])

/** Sorted and distinct. A comma in a tag separates two. */
export const Tags = z
  .array(z.string().trim().min(1).max(MAX_TEXT_CHARS))
  .max(MAX_TAGS)
  .transform((texts) => [...new Set(texts.flatMap(parts))].toSorted())
  .pipe(
    z
      .array(
        z
          .string()
          .max(MAX_TAG_CHARS)
          .regex(/^\P{Cc}*$/u, 'A tag cannot contain control characters.'),
      )
      .max(MAX_TAGS),
  )

/** The tags of every account that has some, sorted. */
export const allTags = async (db: Db): Promise<Map<string, string[]>> => {
  const rows = await db.select().from(accountTags).orderBy(accountTags.tag).all()
  const groups = Map.groupBy(rows, ({ accountId }) => accountId)
  return new Map([...groups].map(([id, group]) => [id, group.map(({ tag }) => tag)]))
}

export const getTags = async (db: Db, accountId: string): Promise<string[]> =>
  (await db.select().from(accountTags).where(eq(accountTags.accountId, accountId)).orderBy(accountTags.tag).all()).map(
    ({ tag }) => tag,
  )

export const replaceTags = async (tx: Tx, accountId: string, tags: readonly string[]): Promise<void> => {
  await tx.delete(accountTags).where(eq(accountTags.accountId, accountId)).run()
  for (const tag of tags) await tx.insert(accountTags).values({ accountId, tag }).run()
}
