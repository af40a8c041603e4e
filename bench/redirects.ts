import { run } from '../test/helpers/postgres.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { atLeast, atMost, median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { portOf, startBenchServer } from './helpers/server.ts'
import { linksSeed, redirectsMade, visitLinks, VISITORS } from './helpers/visits.ts'
import type { LoadRound } from './helpers/wrk.ts'

const LINKS = 1_000
const ROUNDS = 7
const SECONDS = 4
const BOUND = 0.7
const P99_MS = 5

/** Redirects with clicks counted, beside bare node:http that answers from a Map, in alternating rounds. */
export const redirects: Part = {
  name: 'redirects',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const server = await startBenchServer(owner, { DATABASE_URL: url })
    await run(url, linksSeed(LINKS))
    const bare = await startBare(owner, 'bare-redirect.ts', String(LINKS))
    const ports = { bare: bare.port, gatehouse: portOf(server.links) }
    const rounds: Record<keyof typeof ports, LoadRound[]> = { bare: [], gatehouse: [] }
    for (let round = -1; round < ROUNDS; round++) {
      for (const name of ['bare', 'gatehouse'] as const) {
        const result = await visitLinks({ port: ports[name], seconds: SECONDS, links: LINKS })
        // The first round fills the cache and lets the code become fast: it is made, not measured.
        rounds[name].push(result)
      }
    }
    const made = await redirectsMade(server.links)
    await server.stop()
    const [row] = await run(url, 'select sum(clicks)::int as clicks from links.clicks')
    const clicks = Number(row?.['clicks'])
    const seen = rounds.gatehouse.reduce((sum, { answered }) => sum + answered, 0)
    // The load ends while some are under way: they are made, and the client counts them no more.
    const exact = clicks === made && made >= seen && made <= seen + VISITORS * (ROUNDS + 1)
    const measured = (name: keyof typeof ports, value: (round: LoadRound) => number): number =>
      median(rounds[name].slice(1).map(value))
    const rate = (name: keyof typeof ports): number => measured(name, ({ perSecond }) => perSecond)
    const p99 = measured('gatehouse', (round) => round.p99)
    return [
      { name: 'bare (median)', value: rate('bare'), unit: '/s' },
      { name: 'Gatehouse (median)', value: rate('gatehouse'), unit: '/s' },
      atLeast('Gatehouse / bare', rate('gatehouse') / rate('bare'), BOUND),
      { name: 'p99 bare (median)', value: measured('bare', (round) => round.p99), unit: 'ms' },
      atMost('p99 Gatehouse (median)', p99, P99_MS, 'ms'),
      { name: 'redirects made', value: made, unit: '' },
      {
        name: 'clicks in the database',
        value: clicks,
        unit: '',
        bound: 'all of them',
        kept: exact,
      },
    ]
  },
}
