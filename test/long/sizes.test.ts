import { Buffer } from 'node:buffer'
import client from 'postgres'
import { t } from 'tap'
import { openEmbedded } from '../../db/embedded/open.ts'
import { pruneUnderLoad } from '../fixtures/hooks-pruning.ts'
import { checkStreamClients } from '../fixtures/stream-clients.ts'
import { eachBackend, onPostgres, embedded, postgres } from '../helpers/backends.ts'
import { addProvider, eventIds, post, postForm, startHooks } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { insertLinks, leadsTo, startLinks } from '../helpers/links.ts'
import { until } from '../helpers/until.ts'
import { playModel } from '../links/names/model.ts'
import { walksWhileOthersWrite } from '../links/names/pagination-walk.ts'

// What the short suite tries with few rows, clients and calls, in its full size.

/** The embedded engine syncs each write. */
const SEQUENCES = { postgres: 1_000, embedded: 100 }
const EVERY = { postgres: 2, embedded: 8 }
const STREAM = { servers: 1, clients: 200, events: 2_000, portion: 250 }

await eachBackend(t, '200 clients see each event once and in order', (t, backend) =>
  checkStreamClients(t, backend, STREAM),
)

await t.test('200 clients of two servers see each event once and in order', (t) =>
  checkStreamClients(t, postgres, { ...STREAM, servers: 2 }),
)

await eachBackend(t, 'ingestion goes on while 20,000 events are pruned', (t, backend) =>
  pruneUnderLoad(t, backend, { old: 20_000, clients: 12, behind: 800, deliveries: 100 }),
)

await onPostgres(t, 'a log that grows fast does not wait for the hour', async (t, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  await postForm(base, '/settings', { retention_max_rows: '20' })
  const deliver = async (count: number) => {
    for (let n = 0; n < count; n++) await post(base, 'generic/lan', '{}')
  }
  await deliver(40)
  await until(async () => (await eventIds(base)).length === 20, 'the newest 20', 120_000)
  t.pass('within two minutes')
})

await eachBackend(t, 'many random calls never disagree with the model', (t, backend) =>
  playModel(t, backend, SEQUENCES[backend.name]),
)

await eachBackend(t, 'walks over 10,000 rows while others write', (t, backend) =>
  walksWhileOthersWrite(t, backend, { rows: 10_000, limit: 199, every: EVERY[backend.name] }),
)

await t.test('the resolver has more links in memory than anybody uses', async (t) => {
  const links = await startLinks(t, postgres)
  const slugs = Array.from({ length: 10_200 }, (_, n) => `many-${n}`)
  await insertLinks(
    links,
    postgres,
    slugs.map((slug) => ({ slug })),
  )
  const wrong: string[] = []
  const queue = slugs.values()
  async function visitRest() {
    for (const slug of queue) {
      if ((await leadsTo(links.base, `/${slug}`)) !== `https://${slug}.test/`) wrong.push(slug)
    }
  }
  await Promise.all(Array.from({ length: 8 }, visitRest))
  t.same(wrong, [])
  const { text } = await request(`${links.base}/metrics`)
  t.match(text, /^gatehouse_links_cached 10200$/m)
  const bytes = Number(/^gatehouse_links_cached_bytes (\d+)$/m.exec(text)?.[1])
  t.ok(bytes < 6 * 2 ** 20, `${bytes} bytes of 32 MiB`)
})

await t.test('the log is bounded by checkpoints', async (t) => {
  const { GATEHOUSE_DATA_DIR: directory = '' } = await embedded.emptyEnv(t)
  const own = await openEmbedded(directory)
  const options = { host: 'embedded', user: 'postgres', database: 'postgres', max: 1 }
  const sql = client({ ...options, socket: own.socket } as object)
  const chunk = Buffer.alloc(4_000_000, 'x')
  await sql`create table bulk (body bytea)`
  await sql`alter table bulk alter column body set storage external`
  for (let i = 0; i < 36; i++) await sql`insert into bulk values (${chunk})`
  const [row] = await sql`
    select sum(size)::int as size, pg_current_wal_lsn() - redo_lsn as pending
    from pg_ls_waldir(), pg_control_checkpoint() group by redo_lsn`
  t.ok(row?.['size'] <= 128 << 20, `${row?.['size']} bytes of log for 144 MB`)
  t.ok(Number(row?.['pending']) <= 80 << 20)
  await sql.end()
  await own.close()
})
