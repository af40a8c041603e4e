import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { exitOf, spawnProgram } from '../helpers/program.ts'
import { contentsOf, drawnIds } from '../helpers/transfer-check.ts'
import { seedStatements } from '../helpers/transfer-seed.ts'
import { until } from '../helpers/until.ts'

const [embedded, postgres] = backends

/** What the server shows of a move that has come that far, in order. */
const MOMENTS = [
  { when: 'the server is being migrated', seen: `to_regclass('hooks.events') is not null` },
  {
    when: 'events are written',
    seen: `pg_relation_size(to_regclass('hooks.events')) > 1000000`,
  },
  { when: 'links are written', seen: `pg_relation_size(to_regclass('links.links')) > 100000` },
  {
    when: 'tables are compared',
    seen: `exists (select from pg_stat_activity where datname = current_database() and query like 'fetch%')`,
  },
]

t.test('a move that is killed at any moment leaves nothing, and is made again', async (t) => {
  const source = await embedded.env(t)
  await embedded.query(source, seedStatements({ events: 6_000, links: 2_000, sessions: 12 }))
  const wanted = await contentsOf(embedded, source)

  const target = await postgres.emptyEnv(t)
  const args = ['db', 'move', '--to', target['DATABASE_URL'] ?? '']
  for (const { when, seen } of MOMENTS) {
    const child = spawnProgram(args, source)
    const ended = exitOf(child)
    const look = `select coalesce(${seen}, false) as seen`
    await until(async () => (await postgres.query(target, look))[0]?.['seen'], when, 60_000)
    child.kill('SIGKILL')
    t.match(await ended, { signal: 'SIGKILL' }, `killed when ${when}`)
    const rows = `select (select count(*) from hooks.events)::int as events, (select count(*) from hooks.activity)::int as minutes`
    const there = await postgres.query(target, rows)
    t.same(there, [{ events: 0, minutes: 0 }], 'no row is there')
  }

  const moved = await runCli(args, { env: source })
  t.match(moved, { code: 0, stderr: /^copied and verified; / })
  t.same(await contentsOf(postgres, target), wanted, 'every row of every table is the same')

  const again = await runCli([...args, '--json'], { env: source })
  t.match(again, { code: 0, stderr: /^was there already, / })
  t.match(JSON.parse(again.stdout), {
    was_there: true,
    tables: [{ name: 'hooks.activity', rows: 1000, sha256: /^[0-9a-f]{64}$/, next_id: null }],
  })
  t.same(await contentsOf(postgres, target), wanted, 'once more changes nothing')
  t.same(await contentsOf(embedded, source), wanted, 'the source is as it was')
  t.same(await drawnIds(postgres, target), await drawnIds(embedded, source), 'ids go on alike')

  await postgres.query(target, `update links.users set display_name = 'x' where role = 'admin'`)
  const other = await contentsOf(postgres, target)
  t.match(await runCli(args, { env: source }), {
    code: 1,
    stdout: '',
    stderr:
      /^gatehouse: the server's database must be empty, but [a-z._]+ holds rows already: .*\n$/,
  })
  t.same(await contentsOf(postgres, target), other, 'what has changed there is left alone')
})
