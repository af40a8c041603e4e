import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
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

// PostgreSQL refuses changes once the oldest database is 2,000 million transactions old.
t.test(
  'no database is there that is never vacuumed, and whose age would end the engine',
  async (t) => {
    const made = path.join(t.testdir(), 'made')
    const older = path.join(t.testdirName, 'older')
    fs.mkdirSync(older)
    // As it was made before.
    const pg = await PGlite.create({ fs: new NodeFS(path.join(older, 'pg')) })
    await pg.exec('create table kept as select 1 as n')
    const { rows } = await pg.query('select count(*)::int as n from pg_database')
    t.same(rows, [{ n: 3 }], 'its own and two templates')
    await pg.close()

    for (const directory of [made, older]) {
      const engine = await openEmbedded({ directory })
      const sql = connect(engine)
      t.same(await sql`select datname from pg_database`, [{ datname: 'postgres' }])
      for (let i = 0; i < 500; i++) await sql`select pg_current_xact_id()`
      const [before] = await sql`select max(age(datfrozenxid)) as age from pg_database`
      t.ok(before?.['age'] >= 500, `${before?.['age']} transactions`)
      await sql`set vacuum_freeze_min_age = 0`
      await sql`set vacuum_freeze_table_age = 0`
      await sql`vacuum`
      const [after] = await sql`select max(age(datfrozenxid)) as age from pg_database`
      t.ok(after?.['age'] < 500, `${after?.['age']} after a vacuum`)
      await sql.end()
      await engine.close()
    }
    const again = await openEmbedded({ directory: older })
    const reader = connect(again)
    t.same(await reader`select n from kept`, [{ n: 1 }])
    await reader.end()
    await again.close()
  },
)
