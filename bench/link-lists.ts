import { createHash, randomBytes } from 'node:crypto'
import { Agent } from 'node:http'
import { encodeCursor } from '../kernel/cursor.ts'
import { run } from '../test/helpers/postgres.ts'
import { migratedDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { BIG_OWNER, LARGE_OWNER, POPULAR, seedLinks } from './helpers/link-seed.ts'
import { atMost, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const LINKS = 1_000_000
const ROUNDS = 200
const WARM_UP = 20
const BOUND = 1.2
/** An ordinary user: owns some 450 links, is a co-owner of 100 and a recipient of 50. */
const USER = 'u5@example.com'
const ADMIN = 'u7@example.com'

/** A list, who asks for it, and the key that its deep page follows. */
interface List {
  readonly name: string
  readonly path: string
  readonly rows: 'links' | 'tags'
  readonly caller: string
  /** Gives one row with the key. */
  readonly deep: string
}

const OWN = `select o.slug as key from links.link_owners o join links.users u on u.id = o.user_id
  where u.email = '${BIG_OWNER}' order by o.slug offset 90000 limit 1`
const ALL = 'select slug as key from links.links order by slug offset 900000 limit 1'
const TAGGED = `select slug as key from links.link_tags where tag = '${POPULAR}' order by slug offset 250000 limit 1`
const TAGS = 'select tag as key from links.tags order by tag offset 18000 limit 1'
const popular = `/tags/${POPULAR}/links`

const LISTS: readonly List[] = [
  {
    name: '/links, owner of 100,000',
    path: '/links',
    rows: 'links',
    caller: BIG_OWNER,
    deep: OWN,
  },
  { name: '/admin/links', path: '/admin/links', rows: 'links', caller: ADMIN, deep: ALL },
  { name: 'a tag of 300,000, admin', path: popular, rows: 'links', caller: ADMIN, deep: TAGGED },
  { name: 'the same, user', path: popular, rows: 'links', caller: USER, deep: TAGGED },
  { name: 'the same, big owner', path: popular, rows: 'links', caller: BIG_OWNER, deep: TAGGED },
  { name: '/tags, admin', path: '/tags', rows: 'tags', caller: ADMIN, deep: TAGS },
  { name: '/tags, user', path: '/tags', rows: 'tags', caller: USER, deep: TAGS },
  { name: '/tags, big owner', path: '/tags', rows: 'tags', caller: BIG_OWNER, deep: TAGS },
]

const ADDRESS = `url=${encodeURIComponent('https://intranet.example.com/shared/42')}`
const SEARCH_ROUNDS = 50
const MAX_LIST_MS = 20
const MAX_SEARCH_MS = 50

/** Sorted and searched lists with their bound in milliseconds, for each of CALLERS. */
const SEARCHES: readonly (readonly [query: string, bound: number])[] = [
  ['sort=clicks', MAX_LIST_MS],
  ['sort=created', MAX_LIST_MS],
  ['sort=last_click', MAX_LIST_MS],
  ['scope=all&sort=clicks', MAX_LIST_MS],
  ['scope=all&q=fda8da', MAX_SEARCH_MS],
  ['scope=all&q=fda8da&sort=clicks', MAX_SEARCH_MS],
  ['scope=all&q=intranet', MAX_SEARCH_MS],
  ['scope=all&q=zzzqqq', MAX_SEARCH_MS],
  ['scope=all&q=title+shared', MAX_SEARCH_MS],
  ['scope=all&q=title+shared&sort=clicks', MAX_SEARCH_MS],
  ['scope=all&tag=tag-17&sort=clicks', MAX_SEARCH_MS],
  [ADDRESS, MAX_SEARCH_MS],
  ['url=https://nowhere.test/', MAX_SEARCH_MS],
  ['scope=all&state=active', MAX_SEARCH_MS],
  ['scope=all&state=archived', MAX_SEARCH_MS],
  ['scope=all&state=used_up', MAX_SEARCH_MS],
  [`scope=all&owner=${LARGE_OWNER}&sort=clicks`, MAX_SEARCH_MS],
]
const CALLERS = { 'owner of 100,000': BIG_OWNER, '30,000': LARGE_OWNER, user: USER, admin: ADMIN }

/** Lists of a million links: a page nine tenths down costs what the first one costs. */
export const linkLists: Part = {
  name: 'link-lists',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await migratedDatabase(owner)
    await seedLinks(url, LINKS)
    await run(url, `update links.users set role = 'admin' where email = '${ADMIN}'`)
    const server = await startBenchServer(owner, { DATABASE_URL: url })
    const tokens = new Map<string, string>()
    for (const email of Object.values(CALLERS)) tokens.set(email, await makeToken(url, email))

    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    owner.teardown(() => agent.destroy())
    const pages: { list: List; first: string; deep: string; times: [number[], number[]] }[] = []
    for (const list of LISTS) {
      const [row] = await run(url, list.deep)
      const first = `${server.links}/api/v1${list.path}?limit=50`
      const cursor = encodeCursor([String(row?.['key']), list.rows])
      pages.push({ list, first, deep: `${first}&cursor=${cursor}`, times: [[], []] })
    }
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      for (const { list, first, deep, times } of pages) {
        const authorization = `Bearer ${tokens.get(list.caller) ?? ''}`
        const pair = [
          { address: first, figures: times[0] },
          { address: deep, figures: times[1] },
        ]
        // Whoever comes second finds warmer memory: they take turns.
        for (const { address, figures } of round % 2 === 0 ? pair : pair.toReversed()) {
          const ms = await timed(() => fetchPage(address, agent, { authorization }))
          if (round >= 0) figures.push(ms)
        }
      }
    }
    const searched: Figure[] = []
    for (const [query, bound] of SEARCHES) {
      for (const [who, email] of Object.entries(CALLERS)) {
        const authorization = `Bearer ${tokens.get(email) ?? ''}`
        const address = `${server.links}/api/v1/links?limit=50&${query}`
        const times: number[] = []
        for (let round = 0; round < SEARCH_ROUNDS; round++) {
          times.push(await timed(() => fetchPage(address, agent, { authorization })))
        }
        searched.push(atMost(`${query}, ${who} (median)`, median(times), bound, 'ms'))
      }
    }
    const listed = pages.flatMap(({ list: { name }, times: [first, deep] }) => {
      const [shallow, far] = [median(first), median(deep)]
      return [
        { name: `${name}: first (median)`, value: shallow, unit: 'ms' },
        { name: `${name}: deep (median)`, value: far, unit: 'ms' },
        atMost(`${name}: deep / first`, far / shallow, BOUND, '×'),
      ]
    })
    return [...listed, ...searched]
  },
}

async function makeToken(url: string, email: string): Promise<string> {
  const token = `gh_${randomBytes(32).toString('hex').slice(0, 43)}`
  const hash = createHash('sha256').update(token).digest()
  const text = `insert into links.tokens (user_id, name, scope, token_hash, created_at)
    select id, 'bench', 'full', $2, now() from links.users where email = $1`
  await run(url, text, [email, hash])
  return token
}
