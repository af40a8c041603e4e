import assert from 'node:assert'
import type { Test } from 'tap'
import type { Api } from '../../helpers/api.ts'
import type { Backend } from '../../helpers/backends.ts'
import { insertLinks, makeLink, startLinks } from '../../helpers/links.ts'
import type { Env } from '../../helpers/program.ts'

/** A page of any list: its rows under the list's name, and the next page's cursor. */
export type Page = Readonly<Record<string, unknown>> & { next_cursor: string | null }

/** A list with the key that it is sorted by. */
export type List = Readonly<Record<'path' | 'rows' | 'key', string>>

/** Rows whose number ends in this may be deleted while others walk. */
const DELETABLE = 7
const VISIBILITIES = ['public', 'private', 'secure']

/**
 * Walks over every list of links `l-00001` and so on while others make and remove links. Each has tag `popular` and
 * one of its own, `t-00001`, and an owner of its own; ann is a co-owner of all. Public, private and secure take turns;
 * eve has a share of every tenth.
 */
export async function walksWhileOthersWrite(
  t: Test,
  backend: Backend,
  { rows, limit, every }: { rows: number; limit: number; every: number },
) {
  const links = await startLinks(t, backend, await stored(t, backend, rows))
  const root = await links.user('root', { admin: true })
  const bob = await links.user('bob')
  const ann = links.api(await links.token('ann@example.com'))
  const eve = links.api(await links.token('eve@example.com'))
  const gone = new Set<number>()
  let made = 0

  /** Makes a link and removes one, near row `at`: on the page that is being read, or the next. */
  async function disturb(at: number) {
    const near = Math.min(rows, Math.max(1, at) + ((made * 37) % Math.ceil(limit * 1.5)))
    const ahead = near - (near % 10) + DELETABLE
    const slug = `l-${padded(near)}-${made++}`
    await makeLink(bob, slug, { tags: ['popular', slug.replace('l', 't')] })
    if (ahead > rows || gone.has(ahead)) return
    gone.add(ahead)
    await root.api('DELETE', `/links/${idOf(ahead)}`)
  }
  let page = 0
  const beside = async (last: string) => {
    if (page++ % every === 0) await disturb(Number(/\d{5}/.exec(last)?.[0] ?? 0))
  }
  const seen = (n: number) => n % 3 === 0 || n % 10 === 0
  const numbers = Array.from({ length: rows }, (_, n) => n + 1)

  const bySlug = { rows: 'links', key: 'slug' } as const
  const tags: List = { path: '/tags', rows: 'tags', key: 'slug' }
  const popular: List = { path: '/tags/popular/links', ...bySlug }
  const walks: readonly [string, Api, List, (n: number) => string | undefined][] = [
    ['/links of an owner', ann, { path: '/links', ...bySlug }, (n) => `l-${padded(n)}`],
    ['/admin/links', root.api, { path: '/admin/links', ...bySlug }, (n) => `l-${padded(n)}`],
    ['a tag, recipient', eve, popular, (n) => (seen(n) ? `l-${padded(n)}` : undefined)],
    ['/tags of a recipient', eve, tags, (n) => (seen(n) ? `t-${padded(n)}` : undefined)],
  ]
  for (const [what, api, list, keyOf] of walks) {
    const { keys } = await walk(api, list, limit, beside)
    t.same(keys, [...new Set(keys)].toSorted(), `${what}: in order, nothing twice`)
    const untouched = numbers.filter((n) => n % 10 !== DELETABLE)
    const expected = untouched.map(keyOf).filter((key) => key !== undefined)
    const wanted = new Set(expected)
    t.same(
      keys.filter((key) => wanted.has(key)),
      expected,
      `${what}: each untouched row once`,
    )
    if (api === eve) {
      t.notOk(keys.includes(keyOf(1) ?? 'l-00001'), `${what}: not what is not theirs`)
    }
  }
}

async function stored(t: Test, backend: Backend, rows: number): Promise<Env> {
  const env = await backend.env(t)
  const users = `insert into links.users (email, display_name, role, created_at)
    select name || '@example.com', name, 'user', now()
      from (select 'u' || lpad(n::text, 5, '0') from generate_series(1, ${rows}) n
            union all values ('ann'), ('eve')) as u(name)`
  await backend.query(env, users)
  const links = Array.from({ length: rows }, (_, at) => {
    const n = at + 1
    return {
      slug: `l-${padded(n)}`,
      id: idOf(n),
      visibility: VISIBILITIES[n % 3] ?? '',
      tags: ['popular', `t-${padded(n)}`],
      owners: [`u${padded(n)}@example.com`, 'ann@example.com'],
      shares: n % 10 === 0 ? ['eve@example.com'] : [],
    }
  })
  await insertLinks({ env }, backend, links)
  return env
}

function idOf(n: number) {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
}

function padded(n: number) {
  return String(n).padStart(5, '0')
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
) {
  const keys: string[] = []
  const sizes: number[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const after: string = cursor === '' ? '' : `&cursor=${cursor}`
    const [answer] = await Promise.all([
      api<Page>('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${after}`),
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

function keysOf(page: Page, rows: string, key: string) {
  const list = page[rows]
  assert.ok(Array.isArray(list), `no ${rows} in a page`)
  return list.map((row: Readonly<Record<string, unknown>>) => String(row[key]))
}
