import type { Database } from '../../db/client.ts'
import { openDatabase } from '../../db/open.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { createLog } from '../../kernel/log.ts'
import type { Clock } from '../../kernel/time.ts'
import { postgres, type Backend, type Row } from './backends.ts'
import type { Owner } from './owner.ts'
import type { Env } from './program.ts'
import { transcript } from './secrets.ts'

/** What `openTimed` may be given. */
export type TimedOptions = {
  backend?: Backend
  /** Variables of a server whose database it shares; without them it is a fresh one. */
  env?: Env
  /** The time at its beginning. */
  began?: number
  /** Its time passes by itself, too, and so do rounds: without this the test makes them. */
  runs?: boolean
}

/**
 * Opens a database, a log and a clock that the test puts forward, for parts of the product in its own process. They
 * are closed after what the test opens later.
 */
export async function openTimed(t: Owner, name: string, options: TimedOptions = {}) {
  const { backend = postgres, began = Date.now(), runs = false } = options
  const start = performance.now()
  let [forward, reached, logged] = [0, true, '']
  const passed = () => forward + (runs ? performance.now() - start : 0)
  const clock: Clock = {
    now: () => new Date(began + passed()),
    elapsed: passed,
    every(ms, callback) {
      const timer = runs ? setInterval(callback, ms / 20) : undefined
      return () => clearInterval(timer)
    },
  }
  const log = createLog((text) => {
    transcript('log', text, name)
    logged += text
  }, clock.now)
  const env = options.env ?? (await backend.env(t))
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const opened = await openDatabase(where, log)
  t.teardown(() => opened[Symbol.asyncDispose]())
  const away = () => Promise.reject(new Unavailable('the test keeps the database away'))
  const db: Database = {
    ...opened.db,
    run: (...given) => (reached ? opened.db.run(...given) : away()),
    transaction: (work) => (reached ? opened.db.transaction(work) : away()),
  }
  return {
    env,
    db,
    /** The database itself, also while it is not reached. */
    whole: opened.db,
    clock,
    log,
    now: clock.now,
    query: (text: string, params: readonly (string | number)[] = []) =>
      opened.db.run({ name: text.slice(0, 60), text }, params) as Promise<readonly Row[]>,
    /** Puts the clock forward, or back. */
    later: (seconds: number) => void (forward += seconds * 1_000),
    /** Whether the database is reached from now on. */
    reach: (next: boolean) => void (reached = next),
    isReached: () => reached,
    /** Everything logged so far. */
    logged: () => logged,
  }
}
