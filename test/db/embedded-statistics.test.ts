import { t } from 'tap'
import type { Test } from 'tap'
import { openDatabase } from '../../db/open.ts'
import type { Query } from '../../db/queries.ts'
import { createLog } from '../../kernel/log.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

const [embedded] = backends

t.test('what changed much is analyzed, whoever changed it', async (t: Test) => {
  const lines: string[] = []
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(),
  )
  const dataDirectory = await temporaryFolder(t)
  const { db, close } = await openDatabase({ url: undefined, dataDirectory, upkeepMs: 50 }, log)
  t.teardown(close)
  await db.transaction((tx) =>
    tx.script(`
      create table big as select generate_series(1, 5000) as n;
      create table small as select generate_series(1, 40) as n`),
  )
  const text = `select reltuples from pg_class where relname in ('big', 'small') order by relname`
  const query: Query = { name: 'known', text, result: 'many', args: [], row: undefined }
  async function known(): Promise<string> {
    return JSON.stringify(await db.run(query, []))
  }
  async function are(big: number): Promise<void> {
    const wanted = JSON.stringify([{ reltuples: big }, { reltuples: -1 }])
    await until(async () => (await known()) === wanted, `statistics of ${big} rows`)
  }
  await are(5_000)
  await db.transaction((tx) => tx.script('insert into big select generate_series(1, 1000)'))
  await are(6_000)
  t.same(lines, [])
})

t.test('who wants fresh statistics does without where others hold the engine', async (t: Test) => {
  const lines: string[] = []
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(),
  )
  const dataDirectory = await temporaryFolder(t)
  const options = { url: undefined, dataDirectory, upkeepMs: 3_600_000, deadlineMs: 300 }
  const { db, close } = await openDatabase(options, log)
  t.teardown(close)
  await db.transaction(async (tx) => {
    await tx.script('create table held (n integer)')
    await t.resolves(db.renewStatistics())
  })
  t.same(lines, [])
})

t.test('what is worn is vacuumed, and every table now and then', async (t: Test) => {
  const lines: string[] = []
  const log = createLog(
    (line) => lines.push(line),
    () => new Date(),
  )
  const env = await embedded.env(t)
  const dataDirectory = env['GATEHOUSE_DATA_DIR'] ?? ''
  const { db, close } = await openDatabase({ url: undefined, dataDirectory, upkeepMs: 20 }, log)
  t.teardown(close)
  async function ask(text: string): Promise<string> {
    const query: Query = { name: 'known', text, result: 'many', args: [], row: undefined }
    return JSON.stringify(await db.run(query, []))
  }
  const never = `select count(*)::int as n
                   from pg_stat_all_tables s
                   join pg_class c on c.oid = s.relid
                  where c.relkind = 'r' and s.last_vacuum is null`
  await until(async () => (await ask(never)) === '[{"n":0}]', 'every table', 120_000)

  const worn = `select n_dead_tup < 100 as clean, vacuum_count > 1 as again
                  from pg_stat_all_tables
                 where relname in ('session_lines', 'memories')
                 order by relname desc`
  t.equal(await ask(worn), '[{"clean":true,"again":false},{"clean":true,"again":false}]')
  await db.transaction((tx) =>
    tx.script(`
      insert into ops.memories (category, observation, confidence, active, created_at, updated_at, fades_at, tier)
      values ('c', 'o', 1, true, now(), now(), now(), 0);
      insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at)
      values (1, 'm', 'completed', 'api', now(), now(), 'h', 'm', now());
      insert into ops.session_lines (session_id, seq, at, kind, text)
      select max(id), generate_series(1, 500), now(), 'text', 'line' from ops.sessions;
      delete from ops.memories;
      delete from ops.session_lines`),
  )
  const wanted = '[{"clean":true,"again":true},{"clean":true,"again":false}]'
  await until(async () => (await ask(worn)) === wanted, 'the worn table alone')
  t.same(lines, [])
})

t.test('an import has fresh statistics on its way, also after calls on few links', async (t) => {
  const links = await startLinks(t, embedded)
  const ann = await links.user('ann')
  for (let call = 0; call < 8; call++) {
    await makeLink(ann, `call-${call}`, { tags: ['calls'] })
    t.equal((await ann.api('GET', '/links')).status, 200)
  }
  const lines = Array.from({ length: 3_000 }, (_, n) => {
    const slug = `many-${String(n).padStart(5, '0')}`
    return `${slug},https://example.com/${n},tag-${n % 20},ann@example.com`
  })
  const input = ['slug,url,tags,owner', ...lines].join('\n')
  const imported = await runCli(['import', '-'], { env: links.env, input })
  t.equal(imported.code, 0, imported.stderr)
  await links.server.stop()
  const text = `select relname, reltuples from pg_class
                 where oid in ('links.links'::regclass, 'links.link_owners'::regclass,
                               'links.link_tags'::regclass, 'links.changes'::regclass)`
  for (const { relname, reltuples } of await embedded.query(links.env, text)) {
    t.ok(Number(reltuples) >= 2_000, `${relname} is known to have ${reltuples} rows`)
  }
})
