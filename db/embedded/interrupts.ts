import type { PGlite } from '@electric-sql/pglite'
import type { WasmMemory } from './shared-memory.ts'

// PostgreSQL looks at two variables while it works on a statement, and ends it when they are set. A
// signal sets them on a server. The engine gets none while it works, so `statement_timeout` does
// nothing there: another thread sets them in the engine's memory.

/** What ends a statement. Any thread can have it. */
export interface Interrupts {
  /** The engine's memory, and where PostgreSQL's variables begin in it. */
  memory: SharedArrayBuffer
  pending: number
  cancel: number
  /** A number: 1 while a client's statement runs. A checkpoint is not to be ended. */
  running: SharedArrayBuffer
}

/** What PGlite's published types leave out. */
interface Addresses {
  _InterruptPending: number
  _QueryCancelPending: number
}

export function interruptsOf(pg: PGlite, { buffer }: WasmMemory): Interrupts {
  const { _InterruptPending, _QueryCancelPending } = pg.Module as unknown as Addresses
  const running = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  return { memory: buffer, pending: _InterruptPending, cancel: _QueryCancelPending, running }
}

/** Runs a client's statement: an interrupt ends this one, and nothing that comes before or after. */
export async function interruptible<T>(
  { memory, cancel, running }: Interrupts,
  run: () => Promise<T>,
): Promise<T> {
  const isRunning = new Int32Array(running)
  Atomics.store(isRunning, 0, 1)
  try {
    return await run()
  } finally {
    Atomics.store(isRunning, 0, 0)
    Atomics.store(new Int32Array(memory), cancel / Int32Array.BYTES_PER_ELEMENT, 0)
  }
}

/**
 * Ends the running statement where PostgreSQL next looks, which is nearly everywhere: not while it
 * waits for the disk, and not in `pg_sleep`.
 */
export function interrupt({ memory, pending, cancel, running }: Interrupts): void {
  if (Atomics.load(new Int32Array(running), 0) === 0) return
  const numbers = new Int32Array(memory)
  Atomics.store(numbers, cancel / Int32Array.BYTES_PER_ELEMENT, 1)
  // Only this makes PostgreSQL look at the other one.
  Atomics.store(numbers, pending / Int32Array.BYTES_PER_ELEMENT, 1)
}
