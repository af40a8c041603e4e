import postgres from 'postgres'
import { t, type Test } from 'tap'
import { listQueries } from '../../../db/links/names/lists.ts'
import { tagQueries } from '../../../db/links/names/tags.ts'
import type { Query } from '../../../db/client.ts'
import type { ApiResponse } from '../../helpers/api.ts'
import type { Param } from '../../helpers/backends.ts'
import { makeLink, openLinks, slugsOf, type Caller } from '../../helpers/links.ts'
import { refuses } from '../../helpers/refusals.ts'

/** As long as the hidden tag's name: a length must tell nothing either. */
const ABSENT = 'absent'
const HIDDEN = 'hidden'

const cursorAfter = (key: string) =>
  Buffer.from(JSON.stringify([key, 'links'])).toString('base64url')
const CURSORS = ['', 'private-1', 'secure-3', 'zzz', '\u{10ffff}'].map(cursorAfter)
const QUERIES = ['', '?limit=1', '?limit=0', '?cursor=x', `?limit=1&cursor=${CURSORS[2]}`]
const MORE_QUERIES = CURSORS.map((cursor) => `?cursor=${cursor}`)

await t.test('tags that a caller may not see', async (t) => {
  const links = await openLinks(t)
  const ann = await links.user('ann')
  const eve = await links.user('eve')

  await t.test('an invisible tag is like one that does not exist, on every page', async (t) => {
    for (const visibility of ['private', 'secure']) {
      for (const n of [1, 2, 3]) {
        await makeLink(ann, `${visibility}-${n}`, { visibility, tags: [HIDDEN, 'also-hidden'] })
      }
    }
    await likeNone(t, eve, [...QUERIES, ...MORE_QUERIES])
    t.equal((await slugsOf(ann, `/tags/${HIDDEN}/links`)).length, 6, 'it does exist')
  })

  await t.test('and again once the only link that made it visible is gone', async (t) => {
    const path = `/tags/${HIDDEN}/links`
    const fields = { visibility: 'private', tags: [HIDDEN] }
    for (const kind of ['shares', 'owners', 'public', 'deleted']) {
      const link = await makeLink(ann, `shown-by-${kind}`, fields)
      const of = `/links/${link.id}`
      const isMember = ['shares', 'owners'].includes(kind)
      await likeNone(t, eve, QUERIES)
      if (isMember) await ann.api('POST', `${of}/${kind}`, { email: eve.email })
      else await ann.api('PUT', of, { ...link, visibility: 'public' })
      t.same(await slugsOf(eve, path), [link.slug], kind)
      const after = await slugsOf(eve, `${path}?cursor=${cursorAfter(link.slug)}`)
      t.same(after, [], 'after the last')
      if (isMember) await ann.api('DELETE', `${of}/${kind}/${eve.id}`)
      else if (kind === 'deleted') await ann.api('DELETE', of)
      else await ann.api('PUT', of, { ...link, visibility: 'private' })
      await likeNone(t, eve, QUERIES)
    }
  })
})

/** Both answers are the same bytes with the same headers, whatever page is asked for. */
async function likeNone(t: Test, { api }: Caller, queries: readonly string[]) {
  for (const query of queries) {
    for (const method of ['GET', 'HEAD']) {
      const hidden = await api(method, `/tags/${HIDDEN}/links${query}`)
      const absent = await api(method, `/tags/${ABSENT}/links${query}`)
      t.same(comparable(hidden), comparable(absent), `${method} …/links${query}`)
      if (method === 'HEAD') continue
      const isBad = /limit=[0x]|cursor=x?$/.test(query)
      refuses(t, hidden, isBad ? [400, 'BAD_REQUEST'] : [404, 'NOT_FOUND'])
      t.notOk(hidden.text.includes(HIDDEN), 'nothing of the request comes back')
    }
  }
}

/** All that came back, but what differs between any two answers. */
function comparable({ status, headers, body }: ApiResponse<unknown>) {
  const any = { date: '', 'x-request-id': '' }
  return { status, headers: { ...headers, ...any }, body: body.toString('latin1') }
}

/** Runs a query on one connection that plans in one way. */
type Ask = (
  query: Pick<Query, 'text'>,
  args: readonly (Param | readonly string[])[],
) => Promise<readonly postgres.Row[]>

const ROWS_READ = `select relname as name, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as rows
  from pg_stat_xact_user_tables where schemaname = 'links'`

/** Texts that only hidden links have, and one that is nowhere. */
const TEXTS = ['h-77', 'https://h-7', 'hidden', 'absent']

/** Hidden links of somebody else, all with one tag, each with one of its own; and the caller's. */
const OTHERS = 800
const OWN = 100

await t.test('what one may not see costs what it costs when it is not there', async (t) => {
  const links = await openLinks(t)
  const ann = await links.user('ann')
  const eve = await links.user('eve')
  const owner = await links.user('owner')
  await links.store([
    ...hiddenLinks(ann.email, 'h', OTHERS, 'hidden'),
    ...hiddenLinks(owner.email, 'own', OWN, 'mine'),
    { slug: 'a-public', owners: [owner.email], tags: ['mine'] },
  ])
  await links.query(`update links.link_texts set keys = '{url:hidden}' where slug like 'h-%'`)
  await links.query('analyze')
  for (const plan of ['force_custom_plan', 'force_generic_plan']) {
    const sql = postgres(`${links.env['DATABASE_URL']}?plan_cache_mode=${plan}`, {
      max: 1,
      max_lifetime: null,
    })
    t.teardown(() => sql.end())
    const ask: Ask = async ({ text }, args) => sql.unsafe(text, [...args])
    for (const [who, ids] of [
      ['nobody of them', `{${eve.id}}`],
      ['a member of a group', `{${eve.id},${owner.id}}`],
    ] as const) {
      const what = `${who}, ${plan}`
      await tagsCostNothing(t, ask, ids, what)
      await listsCostNothing(t, ask, { ids, other: ann.id }, what)
      for (const word of ['h', '77', 'none']) {
        const names = [word, [word], word, word, [`% ${word}%`]]
        const args = ['visible', ids, ...names, '\u{10ffff}', new Date(), 5]
        fewRows(t, await rowsOf(ask, listQueries.suggestLinks, args), `${what}: like ${word}`)
      }
    }
  }
})

async function tagsCostNothing(t: Test, ask: Ask, ids: string, what: string) {
  const { listLinks: byTag } = listQueries
  const { listVisibleTags: listed } = tagQueries
  for (const after of ['', 'h-2']) {
    const hidden = await rowsOf(ask, byTag, ['visible', ids, 'hidden', after, 51])
    const absent = await rowsOf(ask, byTag, ['visible', ids, 'absent', after, 51])
    t.same(hidden, absent, `${what}: the same rows of the same tables, after "${after}"`)
  }
  fewRows(t, await rowsOf(ask, listed, [ids, '', 51]), `${what}: GET /tags`)
}

/** Arguments of a search in what a user, with groups, may see; `tag` filters a list, `more` the search itself. */
function searchOf(
  users: string,
  source: string,
  { tag = '', sort = 'slug', more = {} }: { tag?: string; sort?: string; more?: object },
) {
  const args = {
    list: 'visible',
    users,
    source,
    tag,
    sort,
    beginning: '',
    start: '',
    only_beginning: false,
    place: Number.MIN_SAFE_INTEGER,
    after: '',
    rows: 51,
    visibility: '',
    texts: [],
    indexed: [],
    addresses: [],
    owners: [],
    tags: [],
    keys: [],
    owner: null,
    state: '',
    now: new Date(),
    limit: 51,
    ...more,
  }
  return Object.values<Param | readonly string[] | boolean>(args)
}

async function listsCostNothing(
  t: Test,
  ask: Ask,
  { ids, other }: { ids: string; other: string },
  what: string,
) {
  const { searchLinks: find, countLinks: count } = listQueries
  for (const sort of ['slug', 'clicks']) {
    const none = { texts: ['%zzqq%'], owners: ['%zzqq%'], tags: ['none'] }
    for (const more of [{}, none]) {
      const rows = async (tag: string) =>
        rowsOf(ask, find, searchOf(ids, 'list', { tag, sort, more }))
      const sorted = `${what}: a list by ${sort}`
      t.same(await rows('hidden'), await rows('absent'), `${sorted} by tag looks at the same rows`)
      fewRows(t, await rows(''), sorted)
    }
    const searched = (more: object) => rowsOf(ask, find, searchOf(ids, 'texts', { sort, more }))
    const { link_texts: _texts, users: _none, ...nothing } = await searched(none)
    const searches = [
      ...TEXTS.map((text) => ({ texts: [`%${text}%`], indexed: [`%${text}%`] })),
      { tags: ['hidden'] },
      { owners: ['%ann%'] },
      { keys: ['url:hidden'] },
      { owner: other },
    ]
    for (const more of searches) {
      const text = JSON.stringify(more)
      const { link_texts: texts = 0, users: _users, ...others } = await searched(more)
      t.same(others, nothing, `${what}: “${text}” by ${sort}`)
      t.ok(texts <= OWN + 1, `${what}: “${text}” compares ${texts} links, none of others`)
    }
  }
  const addressed = async (address: string) => {
    const more = { addresses: [address] }
    const { users: _users, ...rows } = await rowsOf(ask, find, searchOf(ids, 'texts', { more }))
    return rows
  }
  t.same(await addressed('%ann@%'), await addressed('%absent@%'), `${what}: an address`)
  const counted = (tag: string) => rowsOf(ask, count, ['visible', ids, tag, 1_001])
  t.same(await counted('hidden'), await counted('absent'), `${what}: counts the same rows`)
  fewRows(t, await counted(''), `${what}: counts`)
}

function fewRows(t: Test, rows: Readonly<Record<string, number>>, what: string) {
  // The users are few here, and read whatever is hidden.
  const { users: _users, ...ofLinks } = rows
  const most = Math.max(0, ...Object.values(ofLinks))
  t.ok(most < OTHERS / 2, `${what} looks at ${JSON.stringify(rows)}`)
}

function hiddenLinks(owner: string, prefix: string, count: number, tag: string) {
  return Array.from({ length: count }, (_, n) => {
    const tags = [tag, `of-${prefix}-${n}`]
    return { slug: `${prefix}-${n}`, owners: [owner], visibility: 'private', tags }
  })
}

/** How many rows of each table a query looks at, also in functions. */
async function rowsOf(ask: Ask, query: Query, args: Parameters<Ask>[1]) {
  const read = async () => await ask({ text: ROWS_READ }, [])
  await ask({ text: 'begin' }, [])
  const before = new Map((await read()).map(({ name, rows }) => [name, Number(rows)]))
  await ask(query, args)
  const after = await read()
  await ask({ text: 'rollback' }, [])
  const counts = after.map(({ name, rows }): [string, number] => [
    name,
    Number(rows) - (before.get(name) ?? 0),
  ])
  return Object.fromEntries(counts.filter(([, rows]) => rows > 0))
}
