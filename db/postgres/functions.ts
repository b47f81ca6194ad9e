/**
 * SQLite functions that our statements use, written for PostgreSQL, which has no function of the same name. JSON is
 * stored as text on both. The functions are created with the schema and replaced with each later migration.
 */

const create = (head: string, body: string): string =>
  `CREATE OR REPLACE FUNCTION ${head} LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ ${body} $$`

export const FUNCTIONS: readonly string[] = [
  create('instr(whole text, part text) RETURNS integer', 'SELECT strpos(whole, part)'),
  // Items that are lists or objects are returned as JSON text.
  create(
    'json_each(list text) RETURNS TABLE (key bigint, value text)',
    'SELECT place - 1, item FROM jsonb_array_elements_text(list::jsonb) WITH ORDINALITY AS items (item, place)',
  ),
  // Always returns text. SQLite returns numbers as numbers, so our statements cast the result.
  create(
    'json_extract(document text, path text) RETURNS text',
    "SELECT jsonb_path_query_first(document::jsonb, path::jsonpath) #>> '{}'",
  ),
  // The next two functions accept only paths like `$."name"`.
  create(
    'json_set(document text, path text, value bigint) RETURNS text',
    `SELECT jsonb_set(document::jsonb, ARRAY[btrim(path, '$."')], to_jsonb(value))::text`,
  ),
  create('json_remove(document text, path text) RETURNS text', `SELECT (document::jsonb - btrim(path, '$."'))::text`),
  create('json_group_item(list text, item text) RETURNS text', 'SELECT (list::jsonb || to_jsonb(item))::text'),
  "CREATE OR REPLACE AGGREGATE json_group_array(text) (SFUNC = json_group_item, STYPE = text, INITCOND = '[]')",
]
