import { Buffer } from 'node:buffer'
import postgres from 'postgres'
import { t } from 'tap'
import { openEmbedded } from '../../db/embedded/open.ts'
import { backends } from '../helpers/backends.ts'

t.test('the log is bounded by checkpoints', async (t) => {
  const { GATEHOUSE_DATA_DIR: directory = '' } = await backends[0].emptyEnv(t)
  const own = await openEmbedded(directory)
  const options = { host: 'embedded', user: 'postgres', database: 'postgres', max: 1 }
  const client = postgres({ ...options, socket: own.socket } as object)
  const chunk = Buffer.alloc(4_000_000, 'x')
  await client`create table bulk (body bytea)`
  await client`alter table bulk alter column body set storage external`
  for (let i = 0; i < 36; i++) await client`insert into bulk values (${chunk})`
  const [row] = await client`
    select sum(size)::int as size, pg_current_wal_lsn() - redo_lsn as pending
    from pg_ls_waldir(), pg_control_checkpoint() group by redo_lsn`
  t.ok(row?.['size'] <= 128 << 20, `${row?.['size']} bytes of log for 144 MB`)
  t.ok(Number(row?.['pending']) <= 80 << 20)
  await client.end()
  await own.close()
})
