import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { asset, assetText, inExecutable } from '../../kernel/assets.ts'
import { messageOf } from '../../kernel/log.ts'
import { unpackTree } from './cluster.ts'
import { moved } from './connection.ts'
import { interrupt, type Interrupts } from './interrupts.ts'
import { withSharedMemory } from './shared-memory.ts'

// TypeScript describes WebAssembly only together with the whole DOM.
declare const WebAssembly: { compile: (bytes: Uint8Array) => Promise<WasmModule> }

/** Assets that only the executable has: the worker in one piece, and a packed new cluster. */
export const WORKER = 'worker.mjs'
export const TEMPLATE = 'cluster.zst'

/** SQLSTATE crash_shutdown: to a client this is a server that has crashed. */
const CRASHED = '57P02'

/** Compiled code that threads can share. */
type WasmModule = object

/** The `workerData` of a worker thread. */
export interface WorkerTask {
  /** The cluster's directory. */
  cluster: string
  wasm: WasmModule
}

/** Orders to the worker, one at a time. */
export type WorkerOrder = { kind: 'run'; bytes: Uint8Array<ArrayBuffer> } | { kind: 'close' }

/** Replies of the worker. */
export type WorkerReply =
  | { kind: 'ready'; greeting: Uint8Array; interrupts: Interrupts }
  | { kind: 'ran'; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'checkpoint' }
  | { kind: 'closed' }
  | ({ kind: 'space' } & Space)
  | { kind: 'failed'; reason: string }

/** Whether the disk is too full for changes, sent when that changes; `free` in bytes. */
export interface Space {
  low: boolean
  free: number
}

/**
 * How much a function runs, in bytes of its code, before it is optimised. At V8's own 13 million
 * the start optimises hundreds, and the compiler's threads keep their memory.
 */
const TIERING_BUDGET = 2_000_000_000

/** Compiles the engine's code, whose memory its thread shares with others or not. */
export async function compileEngine(memory: 'own' | 'shared'): Promise<WasmModule> {
  setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`)
  const code = asset('pglite/pglite.wasm')
  return WebAssembly.compile(memory === 'shared' ? withSharedMemory(code) : code)
}

/**
 * PostgreSQL's own limit does not see every recursion: the calls of its JSON parser use no
 * WebAssembly memory. When the thread's stack ends, the engine ends, and not only the statement.
 */
const STACK_MB = 64

function startWorker(task: WorkerTask): Worker {
  const options = { workerData: task, resourceLimits: { stackSizeMb: STACK_MB } }
  if (inExecutable) return new Worker(assetText(WORKER), { ...options, eval: true })
  return new Worker(new URL('./worker.ts', import.meta.url), options)
}

/**
 * Makes a new cluster in `cluster`, not yet forced to the disk: from the template in the
 * executable, else by initdb in a process of its own.
 */
export async function createCluster(cluster: string): Promise<void> {
  if (inExecutable) return unpackTree(asset(TEMPLATE), cluster)
  const script = fileURLToPath(new URL('./create.ts', import.meta.url))
  const child = fork(script, [cluster], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let reason = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (reason += text))
  const [code, signal] = await once(child, 'close')
  if (code === 0) return
  const why = reason.trim() || `its process ended by ${signal ?? code}`
  throw new Error(`cannot create the embedded database: ${why}`)
}

/** What the engine does beside statements. */
export interface EngineEvents {
  /** The disk gets too full for changes, or has space again. */
  onSpace: (space: Space) => void
  onCheckpoint: () => void
}

/** An interrupt does nothing before the statement has begun, and is repeated. */
const INTERRUPT_MS = 100

/**
 * Starts PostgreSQL on an existing cluster, in a thread of its own, after crash recovery where
 * that is needed. `wasm` has shared memory.
 */
export async function startEngine(
  cluster: string,
  wasm: WasmModule,
  events: Partial<EngineEvents> = {},
) {
  const task: WorkerTask = { cluster, wasm }
  const { worker, next, failed, ended } = converse(startWorker(task), events)
  const { greeting, interrupts } = await next<'ready'>()
  let canceling: NodeJS.Timeout | undefined
  let running = false
  return {
    /** What a server sends to a client that has connected. */
    greeting,
    /** Settles if the thread dies by itself. */
    failed,
    /** Runs messages; the memory of `bytes` may move to the thread. One call at a time. */
    async run(bytes: Uint8Array<ArrayBuffer>) {
      const result = next<'ran'>()
      worker.postMessage({ kind: 'run', bytes } satisfies WorkerOrder, moved(bytes))
      running = true
      try {
        return (await result).bytes
      } finally {
        running = false
        clearInterval(canceling)
      }
    },
    /** Ends the statement that runs, as soon as PostgreSQL looks: it answers that it did. */
    cancel() {
      if (!running) return
      clearInterval(canceling)
      interrupt(interrupts)
      canceling = setInterval(() => interrupt(interrupts), INTERRUPT_MS)
    },
    /** Shuts PostgreSQL down (with a checkpoint) and ends the thread. */
    async close() {
      const closed = next()
      worker.postMessage({ kind: 'close' } satisfies WorkerOrder)
      await closed
      await ended
    },
  }
}

type ReplyOf<K extends WorkerReply['kind']> = Extract<WorkerReply, { kind: K }>

function converse(worker: Worker, { onSpace, onCheckpoint }: Partial<EngineEvents>) {
  const failed = Promise.withResolvers<Error>()
  const ended = Promise.withResolvers<void>()
  let failure: Error | undefined
  let closed = false
  let waiting: PromiseWithResolvers<WorkerReply> | undefined

  const fail = (reason: string): void => {
    if (closed || failure !== undefined) return
    failure = Object.assign(new Error(`the embedded database has stopped: ${reason}`), {
      code: CRASHED,
    })
    waiting?.reject(failure)
    failed.resolve(failure)
    // After a panic the thread is held still: nothing may be written any more.
    void worker.terminate()
  }
  worker.on('message', (reply: WorkerReply) => {
    if (failure !== undefined) return
    if (reply.kind === 'failed') return fail(reply.reason)
    if (reply.kind === 'space') return onSpace?.(reply)
    if (reply.kind === 'checkpoint') return onCheckpoint?.()
    if (reply.kind === 'closed') closed = true
    waiting?.resolve(reply)
    // Frees the answer, which may be large.
    waiting = undefined
  })
  worker.on('error', (error) => fail(messageOf(error)))
  worker.on('exit', (code) => {
    fail(`its thread ended with code ${code}`)
    ended.resolve()
  })

  /** The worker's next reply, of the kind that its order asks for; rejects when it fails. */
  async function next<K extends WorkerReply['kind']>(): Promise<ReplyOf<K>> {
    if (failure !== undefined) throw failure
    waiting = Promise.withResolvers()
    return (await waiting.promise) as ReplyOf<K>
  }
  return { worker, next, failed: failed.promise, ended: ended.promise }
}
