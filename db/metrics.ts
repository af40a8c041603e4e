import type { Metrics } from '../kernel/metrics.ts'
import { LEVELS, perLevel, type Level } from './levels.ts'

/** What a client counts. Series are looked up once: statements are many. */
export type ClientMetrics = ReturnType<typeof createClientMetrics>

/** `waiting` gives how many statements of a level wait for a connection. */
export function createClientMetrics(metrics: Metrics, waiting: (level: Level) => number) {
  metrics.gauge(
    'gatehouse_database_waiting',
    'Statements and transactions that wait for a connection to the database.',
    () => LEVELS.map((level) => [{ level }, waiting(level)]),
  )
  const refused = metrics.counter(
    'gatehouse_database_refused',
    'Statements and transactions refused, because no connection was free.',
  )
  const seconds = metrics.histogram(
    'gatehouse_database_statement_seconds',
    'Time from sending a statement to its answer.',
  )
  const reconnects = metrics.counter(
    'gatehouse_database_reconnects',
    'Connections to the database that were lost and are made again.',
  )
  return {
    refused: perLevel((level) => refused.series({ level })),
    seconds: perLevel((level) => seconds.series({ level })),
    reconnects: reconnects.series({}),
  }
}

/** What the embedded engine does beside statements. A server has no series. */
export function createEngineMetrics(metrics: Metrics) {
  const checkpoints = metrics.counter(
    'gatehouse_database_checkpoints',
    'Checkpoints of the embedded database.',
  )
  const vacuums = metrics.counter(
    'gatehouse_database_vacuums',
    'Tables vacuumed in the embedded database.',
  )
  return {
    checkpoint: () => checkpoints.add({}),
    vacuum: () => vacuums.add({}),
  }
}
