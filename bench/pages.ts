import { keepAlive } from '../test/helpers/deliveries.ts'
import { run } from '../test/helpers/postgres.ts'
import { seedStatements } from '../test/helpers/transfer.ts'
import { seedEvents } from './helpers/event-seed.ts'
import { migratedDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { BIG_OWNER, POPULAR, seedLinks } from './helpers/link-seed.ts'
import {
  atMost,
  median,
  quantile,
  timed,
  type Figure,
  type Owner,
  type Part,
} from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const ROWS = 1_000_000
/** Ten days of sessions, one each half an hour, with 200 lines each. */
const SEED = { events: 1_000, links: 0, sessions: 480 }
const ROUNDS = 100
const WARM_UP = 5
/** A slow page is asked fewer times. */
const PAGE_MS = 2_000
const LEAST_ROUNDS = 5
const MEDIAN_MS = 20

/** The counters that pages read, as the ingestion of all these events would have left them. */
const ROLL_UP = `
insert into hooks.activity (provider, minute, events)
select provider, date_trunc('minute', received_at), count(*) from hooks.events group by 1, 2
on conflict do nothing;
insert into ops.events (level, service, message, created_at)
select 'info', 'shop', 'seen ' || n, now() - n * interval '1 s'
  from generate_series(1, ${ROWS}) n;
update links.users set role = 'admin' where email = '${BIG_OWNER}'`

/** The user with a tenth of all links, as a proxy names them. */
const PROXY = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
const BROWSER = { 'Remote-Email': BIG_OWNER, 'Sec-Fetch-Site': 'same-origin' }

/** The pages of each service that list or count rows. */
const PAGES = {
  hooks: [
    ...['/', '/log', '/log?provider=payments', '/log?event_type=push', '/log?event_type=pu*'],
    ...['/log?verified=true', `/log?since=${ROWS / 2}`, '/log?rejected=1', `/log/${ROWS / 2}`],
    ...['/providers', '/destinations', '/settings'],
  ],
  links: [
    ...['/-/', '/-/?sort=clicks', '/-/all', '/-/all?sort=clicks', '/-/all?sort=changed'],
    ...[`/-/all?q=%23${POPULAR}`, '/-/all?q=a1b2', '/-/tags', `/-/tags/${POPULAR}`],
    ...['/-/admin/links', '/-/admin/users', '/a1b2c3'],
  ],
  ops: ['/', '/sessions', '/sessions/400', '/events', '/alerts', '/memories', '/cooldowns'],
} as const

/** Each page, one request at a time, with a million rows of its kind. */
export const pages: Part = {
  name: 'pages',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await migratedDatabase(owner)
    await run(url, seedStatements(SEED))
    await seedEvents(url, ROWS)
    await seedLinks(url, ROWS)
    await run(url, ROLL_UP)
    await run(url, 'vacuum analyze')
    const services = ['hooks', 'links', 'ops'] as const
    const server = await startBenchServer(owner, { DATABASE_URL: url, ...PROXY }, services)
    const agent = keepAlive(owner, 1)
    const figures: Figure[] = []
    for (const service of services) {
      for (const path of PAGES[service]) {
        const times: number[] = []
        const started = performance.now()
        for (let round = -WARM_UP; round < ROUNDS; round++) {
          if (times.length >= LEAST_ROUNDS && performance.now() - started > PAGE_MS) break
          const ms = await timed(() => fetchPage(`${server[service]}${path}`, agent, BROWSER))
          if (round >= 0) times.push(ms)
        }
        const name = `${service} ${path}`
        figures.push(atMost(`${name}: median`, median(times), MEDIAN_MS, 'ms'), {
          name: `${name}: p99`,
          value: quantile(times, 0.99),
          unit: 'ms',
        })
      }
    }
    return figures
  },
}
