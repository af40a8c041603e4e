import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { asset } from '../../kernel/assets.ts'
import { messageOf } from '../../kernel/log.ts'
import { DurableFS } from './durable-fs.ts'
import type { WorkerOrder, WorkerReply, WorkerTask } from './engine.ts'
import { endsIdle, moved, queryMessage, startupPacket } from './connection.ts'
import { freeBytes, RESERVE_BYTES } from '../disk.ts'

const LONGJMP_STATUS = 100 // how PGlite's wasm reports an ordinary SQL error
const SEGMENTS_PER_CHECKPOINT = 3
const SMALL_REPLY = 1 << 20
const SETTINGS = [
  'fsync=on',
  'wal_sync_method=fsync',
  'full_page_writes=on',
  'synchronous_commit=on',
  'shared_buffers=16MB',
  // Bounds for the log that a checkpoint keeps to be reused.
  'min_wal_size=32MB',
  'max_wal_size=64MB',
  // `analyze` reads 300 times as many rows, and holds the only session: 0.1 s for many events.
  'default_statistics_target=10',
]

/**
 * New databases are copied from templates, and nobody creates one here. Nothing vacuums templates,
 * so PostgreSQL would refuse all changes after 2,000 million transactions. They are half of a
 * cluster's files.
 */
const TEMPLATES = ['template1', 'template0']
const TEMPLATE1_FILES = 'base/1'

const task = workerData as WorkerTask
const port = parentPort
if (port === null) throw new Error('db/embedded/worker.ts runs only as a worker thread')

/** The last error that PostgreSQL printed: PGlite only knows that it has ended. */
let lastError = ''
const onStderr = (line: string): boolean => {
  lastError = /\b(?:FATAL|PANIC): +(.*)/.exec(line)?.[1] ?? lastError
  return false
}

function reply(message: WorkerReply, transfer: ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer)
}

if (task.mode === 'create') await create()
else await serve().catch((error: unknown) => fail(error))

/** Makes a new cluster in `task.cluster`; the caller forces it to the disk. */
async function create(): Promise<void> {
  const pg = await PGlite.create({
    fs: new NodeFS(task.cluster),
    pgliteWasmModule: task.wasm,
    fsBundle: new Blob([asset('pglite/pglite.data')]),
  })
  await dropTemplates((statement) => pg.exec(statement))
  await pg.close()
  reply({ kind: 'closed' })
  port?.close()
}

async function dropTemplates(execute: (statement: string) => Promise<unknown>): Promise<void> {
  await execute('update pg_database set datistemplate = false')
  for (const name of TEMPLATES) await execute(`drop database if exists ${name}`)
}

/** Opens the cluster and answers orders, one after the other. */
async function serve(): Promise<void> {
  const fs = new DurableFS(task.cluster)
  const pg = await PGlite.create({
    fs,
    pgliteWasmModule: task.wasm,
    fsBundle: new Blob([asset('pglite/pglite.data')]),
    onStderr,
    startParams: [
      ...PGlite.defaultStartParams.filter((param) => param !== '-F'), // -F turns fsync off
      ...SETTINGS.flatMap((setting) => ['-c', setting]),
    ],
  })
  guard(pg)
  const run = createRunner(pg)
  const greeting = await run(startupPacket())
  // Clusters that were made before creation dropped them.
  if (existsSync(join(task.cluster, TEMPLATE1_FILES)) && freeBytes(task.cluster) >= RESERVE_BYTES)
    await dropTemplates((statement) => run(queryMessage(statement)))

  /** No transaction is open. */
  let idle = true
  let low = false
  // A log that can't grow is a panic, which ends the program: changes stop before the disk is full.
  async function checkFreeSpace(): Promise<void> {
    const free = freeBytes(task.cluster)
    if (free < RESERVE_BYTES === low) return
    low = !low
    await run(queryMessage(`set default_transaction_read_only = ${low ? 'on' : 'off'}`))
    reply({ kind: 'space', low, free })
  }

  async function handle(order: WorkerOrder): Promise<void> {
    if (order.kind === 'close') {
      await pg.close()
      reply({ kind: 'closed' })
      port?.close()
      return
    }
    if (idle) await checkFreeSpace()
    const bytes = await run(order.bytes)
    idle = endsIdle(bytes)
    reply({ kind: 'ran', bytes }, moved(bytes))
    // A single-user PostgreSQL never checkpoints by itself: its log would grow for ever.
    if (!idle || fs.segmentsBegun < SEGMENTS_PER_CHECKPOINT) return
    fs.segmentsBegun = 0
    await run(queryMessage('checkpoint'))
  }
  let handled: Promise<void> = Promise.resolve()
  port?.on('message', (order: WorkerOrder) => {
    handled = handled.then(() => handle(order))
  })
  reply({ kind: 'ready', greeting })
}

/** Gives what runs messages and collects PostgreSQL's answer. */
function createRunner(pg: PGlite): (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>> {
  let out = new Uint8Array(64 * 1024)
  let used = 0
  const collect = (bytes: Uint8Array): void => {
    if (used + bytes.length > out.length) {
      const larger = new Uint8Array(Math.max(out.length * 2, used + bytes.length))
      larger.set(out.subarray(0, used))
      out = larger
    }
    out.set(bytes, used)
    used += bytes.length
  }
  return async (bytes) => {
    used = 0
    // The streaming call: the plain one parses every answer into objects and keeps them for ever.
    await pg.execProtocolRawStream(bytes, { syncToFs: false, onRawData: collect })
    if (out.length <= SMALL_REPLY) return out.slice(0, used)
    const answer = out.subarray(0, used)
    out = new Uint8Array(64 * 1024)
    return answer
  }
}

function fail(error: unknown): void {
  reply({ kind: 'failed', reason: lastError === '' ? messageOf(error) : lastError })
}

/** PGlite swallows panics and traps and carries on with a broken state: stop the thread instead. */
function guard(pg: PGlite): void {
  const mod = pg.Module
  const loop = mod._PostgresMainLoopOnce
  mod._PostgresMainLoopOnce = () => {
    try {
      loop()
    } catch (error) {
      const status = error instanceof Object && 'status' in error ? error.status : undefined
      if (status === LONGJMP_STATUS) throw error
      fail(error)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }
  }
}
