import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { openDatabase, type DatabaseOptions } from '../../db/open.ts'
import { createLog } from '../../kernel/log.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { embedded } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { makeLink, startLinks } from '../helpers/links.ts'
import { inLongRun } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

const NEVER_MS = 3_600_000
const OFTEN_MS = 100

t.test('tables that change are looked after', async (t) => {
  const { GATEHOUSE_DATA_DIR: dataDirectory = '' } = await embedded.env(t)
  const first = await opened(t, { dataDirectory, upkeepMs: OFTEN_MS })
  const { ask, becomes, script } = first

  await t.test('every table is vacuumed now and then, a worn one at once', async (t) => {
    const never = `select count(*)::int as n
                     from pg_stat_all_tables s
                     join pg_class c on c.oid = s.relid
                    where c.relkind = 'r' and s.last_vacuum is null`
    await becomes(never, '[{"n":0}]', 'every table')
    const worn = `select n_dead_tup < 100 as clean, vacuum_count > 1 as again
                    from pg_stat_all_tables
                   where relname in ('session_lines', 'memories')
                   order by relname desc`
    t.equal(await ask(worn), '[{"clean":true,"again":false},{"clean":true,"again":false}]')
    await script(`
      insert into ops.memories (category, observation, confidence, active, created_at, updated_at, fades_at, tier)
      values ('c', 'o', 1, true, now(), now(), now(), 0);
      insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at)
      values (1, 'm', 'completed', 'api', now(), now(), 'h', 'm', now());
      insert into ops.session_lines (session_id, seq, at, kind, text)
      select max(id), generate_series(1, 500), now(), 'text', 'line' from ops.sessions;
      delete from ops.memories;
      delete from ops.session_lines`)
    const wanted = '[{"clean":true,"again":true},{"clean":true,"again":false}]'
    await becomes(worn, wanted, 'the worn table alone')
  })

  await t.test('what changed much is analyzed, whoever changed it', async () => {
    await script(`
      create table big as select generate_series(1, 5000) as n;
      create table small as select generate_series(1, 40) as n`)
    const text = `select analyze_count as n from pg_stat_all_tables
                   where relname in ('big', 'small') order by relname`
    async function are(big: number) {
      const wanted = JSON.stringify([{ n: big }, { n: 0 }])
      await becomes(text, wanted, `analyzed ${big} times`)
    }
    await are(1)
    await script('insert into big select generate_series(1, 1000)')
    await are(2)
  })

  await t.test('what only came in is vacuumed too, before it is much', async () => {
    // A long value is kept in pieces of 2,000 bytes, in a table of its own.
    await script(`
      create table few as select generate_series(1, 900) as n;
      create table many as select generate_series(1, 30000) as n;
      create table long (bytes bytea);
      alter table long alter column bytes set storage external;
      insert into long select convert_to(repeat('x', 20000), 'utf8') from generate_series(1, 90)`)
    const vacuumed = `
      select c.relname as name, s.vacuum_count as n, s.n_ins_since_vacuum as since
        from pg_class c
        join pg_stat_all_tables s on s.relid in (c.oid, c.reltoastrelid)
       where c.relname in ('few', 'many', 'long')
       order by c.relname, s.schemaname`
    const once = (name: string) => ({ name, n: 1, since: 0 })
    const first = JSON.stringify(['few', 'long', 'long', 'many'].map(once))
    await becomes(vacuumed, first, 'the first time')
    await script(`
      insert into few select generate_series(1, 900);
      insert into many select generate_series(1, 6000);
      insert into long select convert_to(repeat('x', 20000), 'utf8') from generate_series(1, 200)`)
    const second = JSON.stringify([
      { name: 'few', n: 1, since: 900 },
      { name: 'long', n: 2, since: 0 },
      { name: 'long', n: 1, since: 200 },
      { name: 'many', n: 2, since: 0 },
    ])
    await becomes(vacuumed, second, 'those of which much came in')
  })
  t.same(first.lines, [])
  await first.close()

  await t.test('one that takes too long is ended, told, and keeps no other from it', async (t) => {
    const metrics = createMetrics()
    const options = { dataDirectory, upkeepMs: OFTEN_MS, upkeepDeadlineMs: 5_000, metrics }
    const { becomes, script, lines } = await opened(t, options)
    // A vacuum brings this index up to date, for which it asks a function that does not come back.
    await script(`
      create table stuck (n integer);
      create function forever(n integer) returns integer language plpgsql immutable as $$
      begin
        while exists (select from public.stuck) loop perform pg_sleep(0.05); end loop;
        return n;
      end $$;
      create table large as select generate_series(1, 1000) as n;
      create index large_forever on large using brin (forever(n)) with (pages_per_range = 1);
      alter index large_forever alter column 1 set statistics 0;
      insert into large select generate_series(1, 20000);
      insert into stuck values (1)`)
    const told = () => lines.filter((line) => line.includes('vacuumed'))
    await until(() => told().length > 0, 'the line')
    t.match(
      told()[0],
      /"msg":"tables not vacuumed","error":"\S+: it took too long and was ended; /,
    )
    await script('create table other as select generate_series(1, 2000) as n')
    const counts = `select relname as name, vacuum_count > 0 as done
                      from pg_stat_all_tables where relname in ('large', 'other') order by relname`
    const wanted = '[{"name":"large","done":false},{"name":"other","done":true}]'
    await becomes(counts, wanted, 'the other table')
    t.equal(told().length, 1, 'told once')
    t.match(metrics.render(), /^gatehouse_database_vacuums_total [1-9]/m)
  })
})

void inLongRun(t, 'a table that cannot be read keeps no other one from it', async (t: Test) => {
  const { GATEHOUSE_DATA_DIR: dataDirectory = '' } = await embedded.emptyEnv(t)
  const before = await opened(t, { dataDirectory, upkeepMs: NEVER_MS })
  await before.script(`
    create schema a;
    create table a.torn as select generate_series(1, 1000) as n`)
  const path = await before.ask("select pg_relation_filepath('a.torn') as path")
  await before.close()
  const file = join(dataDirectory, 'pg', /"path":"(.*?)"/.exec(path)?.[1] ?? '')
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0xff, 0, 8192))

  const { becomes, script, lines } = await opened(t, { dataDirectory, upkeepMs: OFTEN_MS })
  // What came in is on pages behind the torn one.
  await script('insert into a.torn select generate_series(1, 1000)')
  for (const table of ['first', 'second']) {
    await script(`create table ${table} as select generate_series(1, 2000) as n`)
    const known = `select vacuum_count > 0 and analyze_count > 0 as known
                     from pg_stat_all_tables where relname = '${table}'`
    await becomes(known, '[{"known":true}]', `the ${table} table`)
  }
  const told = lines.map(
    (line) => `${/"msg":"(.*?)"/.exec(line)?.[1]}: ${/ a\.torn: /.exec(line)}`,
  )
  t.same(told.sort(), ['statistics not renewed:  a.torn: ', 'tables not vacuumed:  a.torn: '])
  await script('drop table a.torn')
  await until(() => lines.length === 4, 'it to be told that both work again')
})

const FRESH = 'an import has fresh statistics on its way, also after a call on few links'
void inLongRun(t, FRESH, async (t: Test) => {
  const links = await startLinks(t, embedded)
  const ann = await links.user('ann')
  await makeLink(ann, 'first', { tags: ['calls'] })
  t.equal((await ann.api('GET', '/links')).status, 200)
  const lines = Array.from({ length: 1_000 }, (_, n) => {
    return `many-${n},https://example.com/${n},tag-${n % 20},ann@example.com`
  })
  const input = ['slug,url,tags,owner', ...lines].join('\n')
  const imported = await runCli(['import', '-'], { env: links.env, input })
  t.equal(imported.code, 0, imported.stderr)
  await links.server.stop()
  const text = `select relname, reltuples from pg_class
                 where oid in ('links.links'::regclass, 'links.link_owners'::regclass,
                               'links.link_tags'::regclass, 'links.changes'::regclass)`
  for (const { relname, reltuples } of await embedded.query(links.env, text)) {
    t.ok(Number(reltuples) >= 1_000, `${relname} is known to have ${reltuples} rows`)
  }
})

/** The embedded database of a folder. */
async function opened(t: Test, options: Omit<DatabaseOptions, 'url'>) {
  const lines: string[] = []
  const log = createLog(
    (text) => lines.push(...text.trim().split('\n')),
    () => new Date(),
  )
  const database = await openDatabase({ url: undefined, ...options }, log)
  const { db } = database
  let closed: PromiseLike<void> | undefined
  const closeOnce = async () => await (closed ??= database[Symbol.asyncDispose]())
  t.teardown(closeOnce)
  const ask = async (text: string) => JSON.stringify(await db.run({ name: 'known', text }, []))
  return {
    close: closeOnce,
    /** What was logged. */
    lines,
    script: (text: string) => db.transaction((tx) => tx.script(text)),
    /** The rows of a query, as JSON. */
    ask,
    /** Waits until they are these. Statistics of all tables cost much: it does not ask all the time. */
    becomes: (text: string, rows: string, what: string) =>
      until(async () => (await ask(text)) === rows, what, 120_000, 300),
  }
}
