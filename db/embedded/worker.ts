import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { asset } from '../../kernel/assets.ts'
import { collectWhenIdle } from '../../kernel/idle.ts'
import { messageOf } from '../../kernel/log.ts'
import { DurableFS } from './durable-fs.ts'
import type { WorkerOrder, WorkerReply, WorkerTask } from './engine.ts'
import { endsIdle, moved, queryMessage, startupPacket } from './connection.ts'
import { interruptible, interruptsOf } from './interrupts.ts'
import { addLibraries } from './libraries.ts'
import { createSharedMemory } from './shared-memory.ts'
import { freeBytes, RESERVE_BYTES } from '../disk.ts'

const LONGJMP_STATUS = 100 // how PGlite's wasm reports an ordinary SQL error
const SEGMENTS_PER_CHECKPOINT = 3
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

await serve().catch((error: unknown) => fail(error))

/** Opens the cluster and answers orders, one after the other. */
async function serve(): Promise<void> {
  const memory = createSharedMemory()
  const fs = new DurableFS(task.cluster, memory)
  const pg = await PGlite.create({
    fs,
    pgliteWasmModule: task.wasm,
    fsBundle: filesOfEngine(),
    onStderr,
    startParams: [
      ...PGlite.defaultStartParams.filter((param) => param !== '-F'), // -F turns fsync off
      ...SETTINGS.flatMap((setting) => ['-c', setting]),
    ],
  })
  guard(pg)
  addLibraries(pg)
  const interrupts = interruptsOf(pg, memory)
  const run = createRunner(pg)
  const greeting = await run(startupPacket())

  /** No transaction is open. */
  let idle = true
  let low = false
  // A log that can't grow is a panic, which ends the program: changes stop before the disk is
  // full.
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
    const bytes = await interruptible(interrupts, () => run(order.bytes))
    idle = endsIdle(bytes)
    reply({ kind: 'ran', bytes }, moved(bytes))
    // A single-user PostgreSQL never checkpoints by itself: its log would grow for ever.
    if (!idle || fs.segmentsBegun < SEGMENTS_PER_CHECKPOINT) return
    fs.segmentsBegun = 0
    await run(queryMessage('checkpoint'))
    reply({ kind: 'checkpoint' })
  }
  let handled: Promise<void> = Promise.resolve()
  port?.on('message', (order: WorkerOrder) => {
    handled = handled.then(() => handle(order))
  })
  reply({ kind: 'ready', greeting, interrupts })
  collectWhenIdle()
}

/** The files that the engine reads. A real blob would be a second copy of 6 MB, kept for good. */
function filesOfEngine(): Blob {
  const { buffer } = asset('pglite/pglite.data')
  return { arrayBuffer: async () => buffer } as Blob
}

/** Gives what runs messages and collects PostgreSQL's answer. */
function createRunner(pg: PGlite): (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>> {
  return async (bytes) => {
    const parts: Uint8Array<ArrayBuffer>[] = []
    // The engine writes the next part into the same memory.
    const onRawData = (part: Uint8Array): void => void parts.push(part.slice())
    // The streaming call: the plain one parses every answer into objects and keeps them for ever.
    await pg.execProtocolRawStream(bytes, { syncToFs: false, onRawData })
    const answer = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      answer.set(part, at)
      at += part.length
    }
    return answer
  }
}

function fail(error: unknown): void {
  reply({ kind: 'failed', reason: lastError === '' ? messageOf(error) : lastError })
}

/**
 * PGlite swallows panics and traps and carries on with a broken state: stop the thread instead.
 */
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
