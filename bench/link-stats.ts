import { createHash, randomBytes } from 'node:crypto'
import { Agent } from 'node:http'
import { run } from '../test/helpers/postgres.ts'
import { freshDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { atMost, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'
import { linksSeed } from './helpers/visits.ts'

const LINKS = 20
const DAYS = 1_096
const ROUNDS = 100
const WARM_UP = 10
const MAX_MS = 20

/** Sources of each day or month in `days`: this many hosts, and 15 kinds of clients. */
function sources(days: string, hosts: number): string {
  return `insert into links.click_sources (link_id, day, referrers, clients)
   select id, d.day, r.counts, c.counts
     from (${days}) d
    cross join links.links
    cross join lateral (select jsonb_object_agg('host-' || h || '.example.com', h * 7) as counts
                          from generate_series(1, ${hosts}) h) r
    cross join lateral (select jsonb_object_agg('client ' || h, h * 7) as counts
                          from generate_series(1, 15) h) c
       on conflict do nothing`
}

/** Three years of visits as retention leaves them: days, and months with as many hosts as one may have. */
const SEED = [
  `insert into links.clicks (link_id, day, kind, clicks)
   select id, current_date - n, kind, 1000
     from generate_series(0, ${DAYS - 1}) n cross join links.links
    cross join (values ('human'), ('bot'), ('preview')) k (kind)`,
  sources('select current_date - n as day from generate_series(0, 29) n', 50),
  sources(
    `select (date_trunc('month', now()) - n * interval '1 month')::date as day from generate_series(1, 36) n`,
    200,
  ),
  'vacuum analyze',
]

/** The statistics of a link that was visited for three years. */
export const linkStats: Part = {
  name: 'link-stats',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const server = await startBenchServer(owner, { DATABASE_URL: url })
    await run(url, linksSeed(LINKS))
    for (const text of SEED) await run(url, text)
    const token = `gh_${randomBytes(32).toString('hex').slice(0, 43)}`
    await run(
      url,
      `insert into links.tokens (user_id, name, scope, token_hash, created_at)
       select id, 'bench', 'read', $1, now() from links.users where role = 'admin'`,
      [createHash('sha256').update(token).digest()],
    )
    const rows = await run(url, 'select id::text from links.links')
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    owner.teardown(() => agent.destroy())
    const headers = { authorization: `Bearer ${token}` }
    const times: number[] = []
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      const id = String(rows.at(round % LINKS)?.['id'])
      const path = `${server.links}/api/v1/links/${id}/stats`
      const ms = await timed(() => fetchPage(path, agent, headers))
      if (round >= 0) times.push(ms)
    }
    return [atMost('three years × 50 hosts (median)', median(times), MAX_MS, 'ms')]
  },
}
