import { once } from 'node:events'
import postgres from 'postgres'
import { run } from '../../test/helpers/postgres.ts'

/** Providers in turn; an event of the first comes with each 20th id. Its deliveries are signed. */
const PROVIDERS = [
  'code_host',
  'payments',
  'chat',
  ...Array.from({ length: 17 }, (_, n) => `generic:shop-${n}`),
]
const TYPES = 10
export const QUIET_PROVIDER = 'generic:closed-shop'
export const QUIET_TYPE = 'shop.closed'
/** In each 200th event of code_host. */
export const RARE_TEXT = 'needle-in-200'
/** In one event of code_host. */
export const ONE_TEXT = 'needle-in-all'

const COLUMNS = [
  'id',
  'received_at',
  'body_check',
  'trust',
  'provider',
  'event_type',
  'external_id',
  'method',
  'path',
  'content_type',
  'source_ip',
  'headers',
  'payload',
]
const EACH_MS = 1_000
const BODY_BYTES = 2_000
const CHUNK_BYTES = 256 * 1024
/** PostgreSQL counts microseconds from the year 2000. */
const POSTGRES_EPOCH = Date.UTC(2000, 0, 1)
const COPY_HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const COPY_END = Buffer.from([0xff, 0xff])

/**
 * Fills a migrated database with `count` events of 2 KB with the ids from 1, one each second until
 * now, and has retention keep them all. Of 20 providers with 10 types each; another provider and
 * another type have been seen in the oldest tenth of the log only.
 */
export async function seedGrowth(url: string, count: number): Promise<void> {
  await run(url, 'update hooks.settings set retention_max_rows = 0, retention_max_age_days = 0')
  await run(
    url,
    `insert into hooks.providers (name, family, trust_mode, enabled)
     select name, 'webhook', 'open', true from unnest($1::text[]) as name on conflict do nothing`,
    [[...PROVIDERS, QUIET_PROVIDER]],
  )
  const types = [...Array.from({ length: TYPES }, (_, n) => `type-${n}`), QUIET_TYPE]
  await run(
    url,
    `insert into hooks.event_types
     select provider, type from unnest($1::text[]) as provider, unnest($2::text[]) as type`,
    [[...PROVIDERS, QUIET_PROVIDER], types],
  )
  const indexes = await run(
    url,
    `select indexname as name, indexdef as definition from pg_indexes
      where schemaname = 'hooks' and tablename = 'events' and indexname <> 'events_pkey'`,
  )
  for (const { name } of indexes) await run(url, `drop index hooks.${name}`)
  await copyEvents(url, count)
  // At the same time: each reads the whole table.
  await Promise.all(
    indexes.map(({ definition }) => run(url, `set maintenance_work_mem = '1GB'; ${definition}`)),
  )
  await run(
    url,
    `select setval('hooks.events_id_seq', ${count});
     insert into hooks.activity (provider, minute, events)
     select provider, date_trunc('minute', received_at), count(*) from hooks.events
      where id > ${count} - 2 * 86400 group by 1, 2`,
  )
  await run(url, 'vacuum analyze')
}

/** Emptied in the same transaction, the table needs no write-ahead log, and its rows are frozen. */
async function copyEvents(url: string, count: number): Promise<void> {
  const sql = postgres(url, { max: 1, max_lifetime: null, onnotice: () => undefined })
  try {
    await sql.begin(async (tx) => {
      await tx`truncate hooks.events cascade`
      const copy = `copy hooks.events (${COLUMNS.join(', ')}) from stdin (format binary, freeze)`
      const table = await tx.unsafe(copy).writable()
      const over = once(table, 'finish')
      for (const chunk of rowsOf(count)) if (!table.write(chunk)) await once(table, 'drain')
      table.end()
      await over
    })
  } finally {
    await sql.end()
  }
}

/** The rows in the format of COPY, many in a chunk. */
function* rowsOf(count: number): Generator<Buffer> {
  yield COPY_HEADER
  const started = Date.now() - count * EACH_MS
  let parts: Buffer[] = []
  let bytes = 0
  for (let id = 1; id <= count; id++) {
    const row = rowOf(id, count, started)
    parts.push(row)
    bytes += row.length
    if (bytes < CHUNK_BYTES) continue
    yield Buffer.concat(parts)
    parts = []
    bytes = 0
  }
  yield Buffer.concat([...parts, COPY_END])
}

const PADDING = 'x'.repeat(BODY_BYTES)
/** What rows have in common: all from the provider to the payload, but the delivery id. */
const shared = new Map<string, { readonly before: Buffer; readonly after: Buffer }>()

function rowOf(id: number, count: number, started: number): Buffer {
  const isQuiet = id > count * 0.05 && id <= count * 0.1
  const turn = Math.floor(id / PROVIDERS.length)
  const isQuietProvider = isQuiet && id % 100 === 1
  const named = PROVIDERS[id % PROVIDERS.length] ?? ''
  const provider = isQuietProvider ? QUIET_PROVIDER : named
  const type = isQuiet && id % 100 === 2 ? QUIET_TYPE : `type-${turn % TYPES}`
  const text = textOf(id, turn, provider, count)
  const key = `${provider} ${type} ${text}`
  let parts = shared.get(key)
  if (parts === undefined) {
    const payload = JSON.stringify({ text, padding: PADDING }).slice(0, BODY_BYTES - 2) + '"}'
    const head = ['POST', '/webhooks/seed', 'application/json', '127.0.0.1']
    const headers = '[["Content-Type","application/json"],["User-Agent","bench"]]'
    parts = {
      before: Buffer.concat([provider, type].map(fieldOf)),
      after: Buffer.concat([...head, headers, payload].map(fieldOf)),
    }
    shared.set(key, parts)
  }
  const delivery = Buffer.from(`seed-${id}`)
  const { before, after } = parts
  const row = Buffer.allocUnsafe(40 + before.length + 4 + delivery.length + after.length)
  row.writeInt16BE(COLUMNS.length, 0)
  row.writeInt32BE(8, 2)
  row.writeBigInt64BE(BigInt(id), 6)
  row.writeInt32BE(8, 14)
  const received = started + id * EACH_MS - POSTGRES_EPOCH
  row.writeBigInt64BE(BigInt(received) * 1000n, 18)
  row.writeInt32BE(4, 26)
  // Spread over the index, as checksums are.
  row.writeInt32BE(Math.imul(id, 0x9e3779b1), 30)
  row.writeInt32BE(2, 34)
  row.writeInt16BE(1, 38)
  before.copy(row, 40)
  const at = 40 + before.length
  row.writeInt32BE(delivery.length, at)
  delivery.copy(row, at + 4)
  after.copy(row, at + 4 + delivery.length)
  return row
}

function textOf(id: number, turn: number, provider: string, count: number): string {
  if (provider !== PROVIDERS[0]) return ''
  const isMiddle = turn === Math.floor(count / PROVIDERS.length / 2)
  if (isMiddle) return ONE_TEXT
  return turn % 200 === 0 ? RARE_TEXT : `number ${id % 8}`
}

function fieldOf(text: string): Buffer {
  const field = Buffer.alloc(4 + Buffer.byteLength(text))
  field.writeInt32BE(Buffer.byteLength(text), 0)
  field.write(text, 4)
  return field
}
