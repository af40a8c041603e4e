import fs from 'node:fs'
import path from 'node:path'
import postgres from 'postgres'
import t from 'tap'
import type { EmbeddedEngine } from '../../db/embedded/open.ts'
import { openEmbedded } from '../../db/embedded/open.ts'

function connect({ socket }: EmbeddedEngine): postgres.Sql {
  return postgres({ socket, host: 'embedded', user: 'postgres', max: 1 } as object)
}

t.test('the log is bounded by checkpoints', async (t) => {
  const engine = await openEmbedded({ directory: path.join(t.testdir(), 'data') })
  const sql = connect(engine)
  const chunk = Buffer.alloc(4_000_000, 'x')
  await sql`create table bulk (body bytea)`
  await sql`alter table bulk alter column body set storage external`
  for (let i = 0; i < 50; i++) await sql`insert into bulk values (${chunk})`
  const [row] = await sql`
    select sum(size)::int as size, pg_current_wal_lsn() - redo_lsn as pending
    from pg_ls_waldir(), pg_control_checkpoint() group by redo_lsn`
  t.ok(row?.['size'] <= 128 << 20, `${row?.['size']} bytes of log for 200 MB`)
  t.ok(Number(row?.['pending']) <= 80 << 20)
  await sql.end()
  await engine.close()
})

t.test('closing ends connections and shuts PostgreSQL down cleanly', async (t) => {
  const directory = path.join(t.testdir(), 'data')
  const own = await openEmbedded({ directory })
  const client = connect(own)
  await client`create table kept as select 1 as n`
  const open = client.begin(async (tx) => {
    await tx`insert into kept values (2)`
    await own.close()
    await tx`select 1`
  })
  await t.rejects(open, { code: 'CONNECTION_CLOSED' })
  await client.end({ timeout: 0 })
  await own.close()
  // DB_SHUTDOWNED in the control file: the next start needs no recovery.
  t.equal(fs.readFileSync(path.join(directory, 'pg/global/pg_control')).readUInt32LE(16), 1)
  const again = await openEmbedded({ directory })
  const reader = connect(again)
  t.same(await reader`select n from kept`, [{ n: 1 }])
  await reader.end()
  await again.close()
})
