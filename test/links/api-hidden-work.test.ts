import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { linksQueries } from '../../db/links/queries.ts'
import type { Query } from '../../db/queries.ts'
import { backends } from '../helpers/backends.ts'
import type { Param } from '../helpers/backends.ts'
import { insertLinks, startLinks } from '../helpers/links-setup.ts'
import type { StoredLink } from '../helpers/links-setup.ts'
import { run } from '../helpers/postgres.ts'

/** A step of a plan as PostgreSQL tells it after running it. */
type Step = {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly Step[]
}

/** Runs a query on one connection that plans in one way. */
type Ask = (
  query: Pick<Query, 'text'>,
  args: readonly (Param | readonly string[])[],
) => Promise<readonly postgres.Row[]>

/** Hidden links of somebody else, all with one tag, each with one of its own; and the caller's. */
const OTHERS = 800
const OWN = 100

await t.test('what one may not see costs what it costs when it is not there', async (t) => {
  const links = await startLinks(t, backends[1])
  const url = links.env['DATABASE_URL'] ?? ''
  const [ann, eve, owner] = [
    await links.user('ann'),
    await links.user('eve'),
    await links.user('owner'),
  ]
  await insertLinks(links, backends[1], [
    ...hiddenLinks(ann.email, 'h', OTHERS, 'hidden'),
    ...hiddenLinks(owner.email, 'own', OWN, 'mine'),
    { slug: 'a-public', owners: [owner.email], tags: ['mine'] },
  ])
  for (const statistics of ['as they come', 'fresh']) {
    if (statistics === 'fresh') await run(url, 'analyze')
    for (const plan of ['force_custom_plan', 'force_generic_plan']) {
      const sql = postgres(`${url}?plan_cache_mode=${plan}`, { max: 1, max_lifetime: null })
      const ask: Ask = async ({ text }, args) => sql.unsafe(text, [...args])
      for (const { id, email } of [eve, owner]) {
        const what = `${email}, statistics ${statistics}, ${plan}`
        await tagsCostNothing(t, ask, id, what)
        await listsCostNothing(t, ask, id, what)
        const ends = await ask(linksQueries.linkWindowEnd, [id, 'visible', '', '', '{', 20])
        t.same(ends, email === owner.email ? [{ slug: 'own-25' }] : [], `${what}: where it stops`)
      }
      await sql.end()
    }
  }
})

async function tagsCostNothing(t: Test, ask: Ask, id: string, what: string): Promise<void> {
  const { listVisibleTagLinks: byTag, listVisibleTags: listed } = linksQueries
  for (const [after, limit] of [
    ['', 51],
    ['h-2', 201],
    ['', 1],
  ] as const) {
    const hidden = await rowsOf(ask, byTag, ['hidden', id, after, limit])
    const absent = await rowsOf(ask, byTag, ['absent', id, after, limit])
    t.same(hidden, absent, `${what}: the same rows of the same tables, after "${after}"`)
  }
  fewRows(t, await rowsOf(ask, listed, [id, '', 51]), `${what}: GET /tags`)
}

async function listsCostNothing(t: Test, ask: Ask, id: string, what: string): Promise<void> {
  const { linkWindowEnd: windowEnd, findLinks: find } = linksQueries
  const args = (tag: string) => [id, 'visible', tag, '', '{']
  for (const [query, more] of [
    [windowEnd, [20]],
    [find, ['', [], '', '2026-01-31', 51]],
    [find, ['', ['%zzqq%'], '', '2026-01-31', 51]],
  ] as const) {
    const hidden = await rowsOf(ask, query, [...args('hidden'), ...more])
    const absent = await rowsOf(ask, query, [...args('absent'), ...more])
    t.same(hidden, absent, `${what}: ${query.name} by tag looks at the same rows`)
    fewRows(t, await rowsOf(ask, query, [...args(''), ...more]), `${what}: ${query.name}`)
  }
  const tagged = await ask(windowEnd, [...args('hidden'), 20])
  t.same(tagged, [], `${what}: stops nowhere by a tag of others`)
}

function fewRows(t: Test, rows: Readonly<Record<string, number>>, what: string): void {
  const most = Math.max(0, ...Object.values(rows))
  t.ok(most < OTHERS / 2, `${what} looks at ${JSON.stringify(rows)}`)
}

function hiddenLinks(
  owner: string,
  prefix: string,
  count: number,
  tag: string,
): readonly StoredLink[] {
  return Array.from({ length: count }, (_, n) => ({
    slug: `${prefix}-${n}`,
    owners: [owner],
    visibility: 'private',
    tags: [tag, `of-${prefix}-${n}`],
  }))
}

/** How many rows of each table a query looks at; without those of which it finds none, however it is planned. */
async function rowsOf(
  ask: Ask,
  { text }: Query,
  args: Parameters<Ask>[1],
): Promise<Readonly<Record<string, number>>> {
  const [row = {}] = await ask({ text: `explain (analyze, format json) ${text}` }, args)
  const plans: readonly { readonly Plan: Step }[] = row['QUERY PLAN']
  const counts: Record<string, number> = {}
  function add(step: Step): void {
    const table = step['Relation Name']
    const removed = step['Rows Removed by Filter'] ?? 0
    const rechecked = step['Rows Removed by Index Recheck'] ?? 0
    const rows = (step['Actual Rows'] + removed + rechecked) * step['Actual Loops']
    // A bitmap's scan has no table's name, but reads an index of one.
    const name = step['Node Type'] === 'Bitmap Index Scan' ? 'bitmap' : table
    if (name !== undefined && rows > 0) counts[name] = (counts[name] ?? 0) + Math.round(rows)
    for (const inner of step.Plans ?? []) add(inner)
  }
  for (const { Plan } of plans) add(Plan)
  return counts
}
