import { t } from 'tap'
import { linksQueries } from '../../db/links/queries.ts'
import type { Query } from '../../db/queries.ts'
import { backends } from '../helpers/backends.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import type { Caller } from '../helpers/links-setup.ts'
import { run } from '../helpers/postgres.ts'
import type { Param } from '../helpers/backends.ts'

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

/** Hidden links of somebody else, all with one tag, each with one of its own; and the caller's. */
const OTHERS = 800
const OWN = 100

t.test('an invisible tag costs what one costs that does not exist', async (t) => {
  const [, postgres] = backends
  const links = await startLinks(t, postgres)
  const url = links.env['DATABASE_URL'] ?? ''
  const { listVisibleTagLinks: byTag, listVisibleTags: listed } = linksQueries
  const ann = await links.user('ann')
  await makeHidden(ann, 'h', OTHERS, ['hidden'])
  const eve = await links.user('eve')
  const owner = await links.user('owner')
  await makeHidden(owner, 'own', OWN, ['mine'])

  for (const statistics of ['as they come', 'fresh']) {
    if (statistics === 'fresh') await run(url, 'analyze')
    for (const plan of ['force_custom_plan', 'force_generic_plan']) {
      for (const { id, email } of [eve, owner]) {
        const planned = `${url}?plan_cache_mode=${plan}`
        const what = `${email}, statistics ${statistics}, ${plan}`
        for (const [after, limit] of [
          ['', 51],
          ['h-2', 201],
          ['', 1],
        ] as const) {
          const hidden = await rowsOf(planned, byTag, ['hidden', id, after, limit])
          const absent = await rowsOf(planned, byTag, ['absent', id, after, limit])
          t.same(hidden, absent, `${what}: the same rows of the same tables, after "${after}"`)
        }
        const rows = await rowsOf(planned, listed, [id, '', 51])
        const most = Math.max(0, ...Object.values(rows))
        t.ok(most < OTHERS / 2, `${what}: GET /tags looks at ${JSON.stringify(rows)}`)
      }
    }
  }
})

t.test('a list neither looks at nor stops at what its visitor may not see', async (t) => {
  const [, postgres] = backends
  const links = await startLinks(t, postgres)
  const url = links.env['DATABASE_URL'] ?? ''
  const { linkWindowEnd: windowEnd, findLinks: find } = linksQueries
  const ann = await links.user('ann')
  await makeHidden(ann, 'h', OTHERS, ['hidden'])
  const eve = await links.user('eve')
  const owner = await links.user('owner')
  await makeHidden(owner, 'own', OWN, ['mine'])
  await makeLink(owner, 'a-public', { tags: ['mine'] })

  for (const statistics of ['as they come', 'fresh']) {
    if (statistics === 'fresh') await run(url, 'analyze')
    for (const plan of ['force_custom_plan', 'force_generic_plan']) {
      const planned = `${url}?plan_cache_mode=${plan}`
      for (const { id, email } of [eve, owner]) {
        const what = `${email}, statistics ${statistics}, ${plan}`
        const args = (tag: string) => [id, 'visible', tag, '', '{']
        const rest = ['', [], '', '2026-01-31', 51]
        const texts = ['', ['%zzqq%'], '', '2026-01-31', 51]
        for (const [query, more] of [
          [windowEnd, [20]],
          [find, rest],
          [find, texts],
        ] as const) {
          const hidden = await rowsOf(planned, query, [...args('hidden'), ...more])
          const absent = await rowsOf(planned, query, [...args('absent'), ...more])
          t.same(hidden, absent, `${what}: ${query.name} by tag looks at the same rows`)
          const rows = await rowsOf(planned, query, [...args(''), ...more])
          const most = Math.max(0, ...Object.values(rows))
          t.ok(most < OTHERS / 2, `${what}: ${query.name} looks at ${JSON.stringify(rows)}`)
        }
        const ends = await run(planned, windowEnd.text, [...args(''), 20])
        t.same(ends, email === owner.email ? [{ slug: 'own-25' }] : [], `${what}: where it stops`)
        const tagged = await run(planned, windowEnd.text, [...args('hidden'), 20])
        t.same(tagged, [], `${what}: nowhere by a tag of others`)
      }
    }
  }
})

/** Private links, eight at a time. */
async function makeHidden(
  caller: Caller,
  prefix: string,
  count: number,
  tags: readonly string[],
): Promise<void> {
  let made = 0
  async function work(): Promise<void> {
    while (made < count) {
      const slug = `${prefix}-${made++}`
      await makeLink(caller, slug, { visibility: 'private', tags: [...tags, `of-${slug}`] })
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
}

/** How many rows of each table a query looks at; without those of which it finds none, however it is planned. */
async function rowsOf(
  url: string,
  { text }: Query,
  args: readonly (Param | readonly string[])[],
): Promise<Readonly<Record<string, number>>> {
  const [row = {}] = await run(url, `explain (analyze, format json) ${text}`, args)
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
