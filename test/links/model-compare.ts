import assert from 'node:assert'
import type { Reply } from './model-client.ts'
import type { Answer, Made, Model } from './model-state.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const CAP = 200

export function checkRefusal(
  { text }: Reply,
  { code, error }: Extract<Answer, { code: string }>,
): void {
  const got: unknown = JSON.parse(text)
  assert.partialDeepStrictEqual(got, error === undefined ? { code } : { code, error }, text)
  assert.deepEqual(Object.keys(Object(got)).sort(), ['code', 'error'])
  assert.match(String(Object(got).error), /\S/)
}

/** All pages of a list: each is full but the last, and the last alone has no cursor. */
export async function checkList(
  { list, rows }: Extract<Answer, { list: string }>,
  first: Reply,
  limit: number,
  next: (query: string) => Promise<Reply>,
): Promise<void> {
  const size = Math.min(limit, CAP)
  let [reply, at] = [first, 0]
  for (;;) {
    const page: Record<string, unknown> = JSON.parse(reply.text)
    assert.deepEqual(Object.keys(page).sort(), [list, 'next_cursor'].sort())
    const part = rows.slice(at, at + size)
    assert.deepEqual(inOrder(page[list]), part.map(canonical), `rows from ${at} on`)
    at += part.length
    if (at === rows.length) return assert.equal(page['next_cursor'], null, 'on the last page')
    assert.equal(typeof page['next_cursor'], 'string', `after ${at} rows of ${rows.length}`)
    reply = await next(`&cursor=${encodeURIComponent(String(page['next_cursor']))}`)
    assert.equal(reply.status, 200, reply.text)
  }
}

/** A body with what the server made up: new ids are UUIDs, times are in UTC with milliseconds. */
export function checkBody(
  model: Model,
  { text, status }: Reply,
  { body }: Extract<Answer, { body: unknown }>,
): void {
  const got: Made = JSON.parse(text)
  const known = [...model.links.values(), ...model.tokens.values()].some(({ id }) => id === got.id)
  const isNew = status === 201 && !model.users.has(got.id)
  if (isNew) assert.ok(UUID.test(got.id) && !known, `${got.id} is no new UUID`)
  assert.deepEqual(canonical(got), canonical(body(got)))
  checkTimes(got)
}

function inOrder(rows: unknown): readonly unknown[] {
  assert.ok(Array.isArray(rows))
  return rows.map(canonical)
}

function checkTimes(value: unknown): void {
  for (const [name, inner] of Object.entries(Object(value))) {
    if (name.endsWith('_at') && inner !== null) assert.match(String(inner), TIME)
    else if (typeof inner === 'object') checkTimes(inner)
  }
  const { created_at, updated_at } = Object(value)
  if (updated_at !== undefined) assert.ok(updated_at >= created_at, 'updated before it was made')
}

/**
 * A value without what no contract says: the order within tags, owners after the first, shares and
 * tokens, and when a token was used.
 */
export function canonical(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items: unknown[] = value.map(canonical)
    if (items.some(isPrimary)) assert.ok(isPrimary(items[0]), 'the primary owner comes first')
    return items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([name]) => name !== 'last_used_at')
  return Object.fromEntries(members.sort().map(([name, inner]) => [name, canonical(inner)]))
}

function isPrimary(value: unknown): boolean {
  return Object(value).is_primary === true
}
