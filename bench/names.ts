import { backends, type Backend } from '../test/helpers/backends.ts'
import { atLeast, atMost, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { portOf, startBenchServer } from './helpers/server.ts'
import { linksSeed, redirectsMade, visitLinks, VISITORS } from './helpers/visits.ts'

const LINKS = 20_000
const ONE_SECONDS = 5
/** Long enough to visit each link. */
const COLD_SECONDS = 15
/** Longer than a link in memory is given without being read again. */
const MANY_SECONDS = 40
const ROUNDS = 5
const RATE = 0.5
const P99_MS = 50

/** Redirects of 20,000 links at random beside those of one, with clicks counted, on both engines. */
export const names: Part = {
  name: 'names',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const figures: Figure[] = []
    for (const backend of backends) figures.push(...(await measure(owner, backend)))
    return figures
  },
}

async function measure(owner: Owner, backend: Backend): Promise<readonly Figure[]> {
  const env = await backend.env(owner)
  await backend.query(env, linksSeed(LINKS))
  const server = await startBenchServer(owner, env)
  const port = portOf(server.links)
  // Made, and not measured: the code becomes fast.
  await visitLinks({ port, seconds: ONE_SECONDS, links: 1 })
  const cold = await visitLinks({ port, seconds: COLD_SECONDS, links: LINKS })
  const before = await visitLinks({ port, seconds: ONE_SECONDS, links: 1 })
  const many = await visitLinks({ port, seconds: MANY_SECONDS, links: LINKS })
  const after = await visitLinks({ port, seconds: ONE_SECONDS, links: 1 })
  const made = await redirectsMade(server.links)
  const stopping = performance.now()
  await server.stop()
  const stopMs = performance.now() - stopping
  const sum = 'select sum(clicks)::int as clicks from links.clicks'
  const clicks = Number((await backend.query(env, sum))[0]?.['clicks'])
  const one = (before.perSecond + after.perSecond) / 2
  const named = (text: string): string => `${backend.name}, ${text}`
  return [
    { name: named('one name'), value: one, unit: '/s' },
    { name: named('p99 of one name'), value: Math.max(before.p99, after.p99), unit: 'ms' },
    { name: named('20,000 names'), value: many.perSecond, unit: '/s' },
    atLeast(named('20,000 names / one'), many.perSecond / one, RATE),
    atMost(named('p99 of 20,000 names'), many.p99, P99_MS, 'ms'),
    { name: named('20,000 names, none in memory'), value: cold.perSecond, unit: '/s' },
    { name: named('p99 of these'), value: cold.p99, unit: 'ms' },
    { name: named('stop, with the clicks that wait'), value: stopMs, unit: 'ms' },
    { name: named('redirects made'), value: made, unit: '' },
    {
      name: named('clicks in the database'),
      value: clicks,
      unit: '',
      // Visits whose client has gone by then count, too.
      bound: 'all of them',
      kept: clicks >= made && clicks <= made + VISITORS * ROUNDS,
    },
  ]
}
