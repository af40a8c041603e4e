import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { openClient } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { embedded, postgres } from '../helpers/backends.ts'
import { runOk, refuseCommands, runCli } from '../helpers/cli.ts'
import { freePort } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { request } from '../helpers/http.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { contentsOf, drawnIds, seedStatements } from '../helpers/transfer.ts'

t.test('wrong usage, and a source that there is not', async (t) => {
  const url = 'postgres://127.0.0.1:1/x'
  const move = `db move --to ${url}`
  await refuseCommands(t, undefined, [
    ['db move --to mysql://x/y', 2, '--to must be a postgres:// URL'],
    [
      `db move --to postgres://u:${secret('as-argument')}@one,two/x`,
      2,
      '--to has a password, which others can see: give it by -',
    ],
    [move, 1, /there is no database in .*: nothing to move$/],
    [{ args: move, env: { DATABASE_URL: url } }, 1, 'DATABASE_URL is set: '],
  ])
})

const SEED = { events: 1_000, links: 60, sessions: 6 }

t.test('an embedded database moves to a server', async (t) => {
  const source = await embedded.env(t)
  await embedded.query(source, seedStatements(SEED))
  const key = join(source['GATEHOUSE_DATA_DIR'] ?? '', 'secret.key')
  writeFileSync(key, secretKey(), { mode: 0o600 })
  const wanted = await contentsOf(embedded, source)
  for (const { name, rows } of wanted) t.ok(Number(rows) > 0, `${name} has rows to be moved`)

  // As an older program left it.
  const target = await postgres.emptyEnv(t)
  const url = target['DATABASE_URL'] ?? ''
  const db = openClient({ target: url, deadlineMs: 5_000, connections: 1 })
  await migrate(db, 8)
  await db.close()
  const args = 'db move --to -'
  const input = `${url}\n`
  const moved = await runCli(args, { env: source, input })
  const stdout = /^hooks\.events +1002 /m
  t.match(moved, { code: 0, stdout, stderr: 'copied and verified; now set DATABASE_URL' })
  t.match(
    moved.stderr,
    `secrets need the same key: keep ${key}, or set GATEHOUSE_SECRET_KEY to it\n`,
  )
  t.same(await contentsOf(postgres, target), wanted, 'every row of every table is the same')

  // It compares the source with the target again: neither has changed.
  const again = await runCli(`${args} --json`, { env: source, input })
  t.match(again, { code: 0, stderr: 'was there already, ' })
  t.match(JSON.parse(again.stdout), {
    was_there: true,
    tables: [
      { name: 'audit.changes', rows: 100, sha256: /^\w{64}$/, next_id: 101 },
      { name: 'hooks.activity', rows: 1000, next_id: null },
    ],
  })
  t.same(await contentsOf(postgres, target), wanted, 'once more changes nothing')
  await runOk('check', { env: target })
  await idsGoOn(t, target)

  const away = `postgres://someone:${secret('target-password')}@127.0.0.1:${await freePort()}/x`
  await refuseCommands(t, { env: source, state: () => contentsOf(postgres, target) }, [
    [{ args, input: away }, 1, /ECONNREFUSED.*\); try again: nothing was moved$/],
    [{ args, input }, 1, "the server's database must be empty, but audit.changes holds rows "],
  ])
})

/** The server's next event has the id after the last one that there ever was, here one that was deleted. */
async function idsGoOn(t: Test, target: Env) {
  const added = await runCli('provider add late --open --enable', { env: target })
  t.match(added, { code: 0 })
  const server = await startServer(t, { services: ['hooks'], env: target })
  const url = `${server.hooks}/webhooks/generic/late`
  const answer = await request(url, { method: 'POST', body: 'x' })
  t.match(JSON.parse(answer.text), { id: SEED.events + 4 })
  await server.stop()
  const ids = await drawnIds(postgres, target)
  t.match(
    ids.filter(({ name }) => /sessions|changes/.test(String(name))),
    [
      { name: 'audit.changes_id_seq', next: '102' },
      { name: 'links.changes_id_seq', next: String(SEED.links + 1) },
      { name: 'ops.sessions_id_seq', next: String(SEED.sessions + 1) },
    ],
  )
}
