import { Worker } from 'node:worker_threads'
import { asset, assetText, inExecutable } from '../../kernel/assets.ts'
import { messageOf } from '../../kernel/log.ts'
import { unpackTree } from './cluster.ts'
import { moved, type Run } from './connection.ts'

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
  mode: 'create' | 'serve'
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

/** PostgreSQL on one cluster, in a thread of its own. */
interface Engine {
  /** What a server sends to a client that has connected. */
  greeting: Uint8Array
  /** Runs messages; the memory of `bytes` may move to the thread. One call at a time. */
  run: Run
  /** Shuts PostgreSQL down (with a checkpoint) and ends the thread. */
  close: () => Promise<void>
  /** Settles if the thread dies by itself. */
  failed: Promise<Error>
}

/** Compiles the engine's code, once for all the threads that run it. */
export async function compileEngine(): Promise<WasmModule> {
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
 * executable, else by initdb.
 */
export async function createCluster(cluster: string, wasm: WasmModule): Promise<void> {
  if (inExecutable) return unpackTree(asset(TEMPLATE), cluster)
  const { next, ended } = converse(startWorker({ mode: 'create', cluster, wasm }))
  await next('closed')
  await ended
}

/** Starts PostgreSQL on an existing cluster, after crash recovery where that is needed. */
export async function startEngine(
  cluster: string,
  wasm: WasmModule,
  onSpace?: (space: Space) => void,
): Promise<Engine> {
  const task: WorkerTask = { mode: 'serve', cluster, wasm }
  const { worker, next, failed, ended } = converse(startWorker(task), onSpace)
  const { greeting } = await next('ready')
  return {
    greeting,
    failed,
    async run(bytes) {
      const result = next('ran')
      worker.postMessage({ kind: 'run', bytes } satisfies WorkerOrder, moved(bytes))
      return (await result).bytes
    },
    close: async () => {
      const closed = next('closed')
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
  let waiting: { resolve: (reply: WorkerReply) => void; reject: (error: Error) => void } | undefined

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
    const { resolve } = waiting ?? {}
    waiting = undefined
    resolve?.(reply)
  })
  worker.on('error', (error) => fail(messageOf(error)))
  worker.on('exit', (code) => {
    fail(`its thread ended with code ${code}`)
    ended.resolve()
  })

  /** The worker's next reply; rejects when the worker fails or answers something else. */
  const next = async <K extends WorkerReply['kind']>(kind: K): Promise<ReplyOf<K>> => {
    if (failure !== undefined) throw failure
    const reply = await new Promise<WorkerReply>((resolve, reject) => {
      waiting = { resolve, reject }
    })
    if (!isKind(reply, kind))
      throw new Error(`unexpected reply ${reply.kind} of the database thread`)
    return reply
  }
  return { worker, next, failed: failed.promise, ended: ended.promise }
}

function isKind<K extends WorkerReply['kind']>(reply: WorkerReply, kind: K): reply is ReplyOf<K> {
  return reply.kind === kind
}
