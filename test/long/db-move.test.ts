import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { exitOf, spawnProgram } from '../helpers/program.ts'
import type { Env } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'
import { DAY_OF_SESSIONS, contentsOf, drawnIds, seedStatements } from '../helpers/transfer.ts'
import { until } from '../helpers/until.ts'

const [embedded, postgres] = backends
const SEED = { events: 100_000, links: 10_000, sessions: DAY_OF_SESSIONS }

/** A payload of the default limit. */
const LARGE = `
insert into hooks.events (provider, trust, external_id, headers, payload, received_at)
values ('generic:odd', 2, 'large', '[]', decode(repeat(md5('x'), 1638400), 'hex'), now())`

/** What the server shows of a move: it is being migrated, events are written, and links. */
const MOMENTS = [
  `to_regclass('hooks.events') is not null`,
  `pg_relation_size(to_regclass('hooks.events')) > 8000000`,
  `pg_relation_size(to_regclass('links.links')) > 100000`,
]

t.test('100,000 events and all else move to a server, also after kills', async (t) => {
  const source = await embedded.env(t)
  await embedded.query(source, seedStatements(SEED))
  await embedded.query(source, LARGE)
  const wanted = await contentsOf(embedded, source)
  for (const { name, rows } of wanted) t.ok(Number(rows) > 0, `${name} has rows to be moved`)

  const target = await postgres.emptyEnv(t)
  for (const moment of MOMENTS) await killed(t, source, target, moment)
  const moved = await move(source, target)
  t.match(moved, { code: 0, stdout: /^hooks\.events +100003 /m, stderr: /set DATABASE_URL/ })
  t.same(await contentsOf(postgres, target), wanted, 'every row of every table is the same')

  t.match(await runCli(['check'], { env: target }), { code: 0 })
  await idsGoOn(t, target)
})

/** Kills a move when it has come that far: the target is left without a row. */
async function killed(t: Test, source: Env, target: Env, seen: string): Promise<void> {
  const child = spawnProgram(['db', 'move', '--to', '-'], source)
  child.stdin.end(target['DATABASE_URL'])
  const ended = exitOf(child)
  const look = `select coalesce(${seen}, false) as far`
  await until(async () => (await postgres.query(target, look))[0]?.['far'], seen, 120_000)
  child.kill('SIGKILL')
  t.match(await ended, { signal: 'SIGKILL' })
  t.match(await postgres.query(target, 'select count(*)::int as n from hooks.events'), [{ n: 0 }])
}

/** The server's next event has the id after the last one that there ever was, here one that was deleted. */
async function idsGoOn(t: Test, target: Env): Promise<void> {
  const added = await runCli(['provider', 'add', 'late', '--open', '--enable'], { env: target })
  t.match(added, { code: 0 })
  const server = await startServer(t, { services: ['hooks'], env: target })
  const answer = await request(`${server.hooks}/webhooks/generic/late`, {
    method: 'POST',
    body: 'x',
  })
  t.match(JSON.parse(answer.text), { id: SEED.events + 5 })
  const odd = await request(`${server.hooks}/log/${SEED.events + 2}`, {
    headers: { accept: 'application/json' },
  })
  t.match(odd, { status: 200 })
  await server.stop()
  const ids = await drawnIds(postgres, target)
  t.match(
    ids.filter(({ name }) => /sessions|changes/.test(String(name))),
    [
      { name: 'audit.changes_id_seq', next: '102' },
      { name: 'links.changes_id_seq', next: String(SEED.links + 1) },
      { name: 'ops.sessions_id_seq', next: String(DAY_OF_SESSIONS + 1) },
    ],
  )
  await postgres.query(target, `delete from hooks.events where provider = 'generic:late'`)
}

function move(source: Env, target: Env) {
  return runCli(['db', 'move', '--to', '-'], { env: source, input: target['DATABASE_URL'] ?? '' })
}
