import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { asset, assetText, inExecutable } from '../../kernel/assets.ts'
import { messageOf } from '../../kernel/log.ts'
import { unpackTree } from './cluster.ts'
import { moved } from './connection.ts'

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
  | { kind: 'ready'; greeting: Uint8Array }
  | { kind: 'ran'; bytes: Uint8Array<ArrayBuffer> }
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

/** Compiles the engine's code. */
export async function compileEngine(): Promise<WasmModule> {
  setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`)
  return WebAssembly.compile(asset('pglite/pglite.wasm'))
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

/**
 * Starts PostgreSQL on an existing cluster, in a thread of its own, after crash recovery where
 * that is needed.
 */
export async function startEngine(
  cluster: string,
  wasm: WasmModule,
  onSpace?: (space: Space) => void,
) {
  const task: WorkerTask = { cluster, wasm }
  const { worker, next, failed, ended } = converse(startWorker(task), onSpace)
  const { greeting } = await next<'ready'>()
  return {
    /** What a server sends to a client that has connected. */
    greeting,
    /** Settles if the thread dies by itself. */
    failed,
    /** Runs messages; the memory of `bytes` may move to the thread. One call at a time. */
    async run(bytes: Uint8Array<ArrayBuffer>) {
      const result = next<'ran'>()
      worker.postMessage({ kind: 'run', bytes } satisfies WorkerOrder, moved(bytes))
      return (await result).bytes
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

function converse(worker: Worker, onSpace?: (space: Space) => void) {
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
