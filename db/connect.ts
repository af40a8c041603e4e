import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import postgres from 'postgres'
import { BYTEA } from './bytea.ts'
import { connectionSettings, withoutSettings } from './connection-settings.ts'
import type { Level, Share } from './levels.ts'
import type { Client } from './pool.ts'
import { socketMaker } from './socket.ts'

/** Connection URL of a server, or the socket maker of the embedded engine. */
export type Target = string | ((level: Level) => Duplex)

/** Makes clients of one connection each; they connect at their first statement. */
export function connector(
  target: Target,
  shares: Readonly<Record<Level, Share>>,
): (level: Level, onClose: () => void) => Client {
  const settings = {
    onnotice: () => undefined,
    connect_timeout: Math.ceil(shares.trusted.deadlineMs / 1000),
    idle_timeout: 0,
    max_lifetime: null,
    fetch_types: false,
    backoff: (retries: number) => Math.min(0.05 * 2 ** retries, 0.5),
    types: { bigint: BIGINT, bytea: BYTEA },
  }
  return (level, onclose) => {
    const name = `gatehouse ${randomUUID()}`
    const connection = connectionSettings(name, shares[level].deadlineMs)
    // The option `socket` is missing from the published types.
    const own = { ...settings, connection, max: 1, onclose }
    if (typeof target === 'string') {
      const make = socketMaker()
      let socket: Duplex | undefined
      const onSocket = { ...own, socket: (to: Parameters<typeof make>[0]) => (socket = make(to)) }
      const sql = postgres(withoutSettings(target, connection), onSocket as typeof own)
      return { name, sql, cut: () => socket?.destroy() }
    }
    const embedded = { host: 'embedded', user: 'postgres', database: 'postgres' }
    const onEngine = { ...own, ...embedded, socket: () => target(level) }
    return { name, sql: postgres(onEngine as typeof own), cut: () => undefined }
  }
}

/** int8 as a number: ids and counters stay far below 2^53. */
const BIGINT: postgres.PostgresType<number> = {
  to: 20,
  from: [20],
  serialize: String,
  parse: Number,
}
