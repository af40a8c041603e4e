import { Unavailable } from '../kernel/fault.ts'
import type { Database, Executor } from './client.ts'

/**
 * The database of a service that starts while the database is out of reach. All calls fail with
 * `Unavailable` until the gate is opened: before that, the database may lack migrations.
 */
export function createGate(inner: Database) {
  let isOpen = false
  const listens: (() => Promise<void>)[] = []

  async function pass<T>(work: () => Promise<T>): Promise<T> {
    if (!isOpen) throw new Unavailable('the database has been out of reach since the start')
    return work()
  }

  function executor({ run }: Executor): Executor {
    return { run: (query, args) => pass(() => run(query, args)) }
  }

  const db: Database = {
    ...executor(inner),
    at: (level) => executor(inner.at(level)),
    transaction: (work) => pass(() => inner.transaction(work)),
    ping: () => pass(inner.ping),
    describe: (query) => pass(() => inner.describe(query)),
    /** Begins to listen when the gate is opened. */
    async listen(channel, onNotice) {
      if (isOpen) return inner.listen(channel, onNotice)
      listens.push(() => inner.listen(channel, onNotice))
    },
    renewStatistics: () => pass(inner.renewStatistics),
    close: inner.close,
  }

  return {
    db,
    /** Listens first: what is read from now on must not miss a change. */
    async open() {
      for (const listen of listens) await listen()
      isOpen = true
    },
  }
}
