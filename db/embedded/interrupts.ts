import type { PGlite } from '@electric-sql/pglite'
import type { WasmMemory } from './shared-memory.ts'

// PostgreSQL looks at two variables while it works on a statement, and ends it when they are set. On
// a server a signal sets them. The engine gets none while it works, so `statement_timeout` does
// nothing there: another thread sets them in the engine's memory.

/** PostgreSQL's variables: the memory, and where each begins. Any thread can have it. */
export interface Interrupts {
  memory: SharedArrayBuffer
  pending: number
  cancel: number
}

/** What PGlite's published types leave out. */
interface Addresses {
  _InterruptPending: number
  _QueryCancelPending: number
}

export function interruptsOf(pg: PGlite, { buffer }: WasmMemory): Interrupts {
  const { _InterruptPending, _QueryCancelPending } = pg.Module as unknown as Addresses
  return { memory: buffer, pending: _InterruptPending, cancel: _QueryCancelPending }
}

/**
 * Ends the running statement where PostgreSQL next looks, which is nearly everywhere: not while it
 * waits for the disk, and not in `pg_sleep`.
 */
export function interrupt({ memory, pending, cancel }: Interrupts): void {
  const numbers = new Int32Array(memory)
  Atomics.store(numbers, cancel / Int32Array.BYTES_PER_ELEMENT, 1)
  // Only this makes PostgreSQL look at the other one.
  Atomics.store(numbers, pending / Int32Array.BYTES_PER_ELEMENT, 1)
}

/** An interrupt that came too late for one statement must not end what comes next. */
export function clearInterrupt({ memory, cancel }: Interrupts): void {
  Atomics.store(new Int32Array(memory), cancel / Int32Array.BYTES_PER_ELEMENT, 0)
}
