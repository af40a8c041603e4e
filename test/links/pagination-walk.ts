import assert from 'node:assert'
import type { Api } from '../helpers/api.ts'

/** A page of any list: its rows under the list's name, and the next page's cursor. */
export type Page = Readonly<Record<string, unknown>> & { readonly next_cursor: string | null }

/** A list with the key that it is sorted by. */
export type List = {
  readonly path: string
  readonly rows: 'links' | 'tags' | 'users'
  readonly key: 'slug' | 'email'
}

/**
 * All keys of a list, page by page; `meanwhile` runs beside each request and is told the last key so
 * far. Throws for an answer that is no page, and for a page that is too long or short of its rows.
 */
export async function walk(
  api: Api,
  { path, rows, key }: List,
  limit: number,
  meanwhile: (last: string) => Promise<unknown> = async () => undefined,
): Promise<{ keys: readonly string[]; sizes: readonly number[] }> {
  const keys: string[] = []
  const sizes: number[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const after: string = cursor === '' ? '' : `&cursor=${cursor}`
    const [answer] = await Promise.all([
      api<Page>('GET', `${path}?limit=${limit}${after}`),
      meanwhile(keys.at(-1) ?? ''),
    ])
    assert.equal(answer.status, 200, answer.text)
    const page = answer.json
    const part = keysOf(page, rows, key)
    assert.ok(page.next_cursor === null || part.length === limit, 'only the last page is short')
    assert.ok(part.length <= limit && (part.length > 0 || keys.length === 0), 'an empty page')
    keys.push(...part)
    sizes.push(part.length)
    cursor = page.next_cursor
  }
  return { keys, sizes }
}

function keysOf(page: Page, rows: string, key: string): readonly string[] {
  const list = page[rows]
  assert.ok(Array.isArray(list), `no ${rows} in a page`)
  return list.map((row: Readonly<Record<string, unknown>>) => String(row[key]))
}
