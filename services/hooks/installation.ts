import type { IncomingHttpHeaders } from 'node:http'
import type { StoredEvent } from '../../db/hooks/events.ts'

// What is sent on names this installation: a random text in the database, which a backup carries.
// Two installations in front of one receiver are told apart by it, and a delivery that comes back.

/** How a request names those who have passed it on (RFC 8586). */
const LOOP = 'cdn-loop'

/**
 * What a receiver knows a delivery by: the same for each try, another one for each event of each
 * installation. After a restore an id may name another event than before: its time tells them
 * apart.
 */
export function deliveryKey(
  installation: string,
  { id, received_at }: Pick<StoredEvent, 'id' | 'received_at'>,
): string {
  return `${installation}-${id}-${received_at.getTime().toString(36)}`
}

/** The header with which an event is sent on: whoever passed it on before, then we. */
export function loopHeader(
  installation: string,
  stored: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const before = stored[LOOP]
  const own = loopId(installation)
  return { [LOOP]: before === undefined ? own : `${before}, ${own}` }
}

/**
 * True for a delivery that was sent from here more than once. Once is no loop: an event may be sent
 * to another provider here, which stores it as an event of its own.
 */
export function isLoop(installation: string, headers: IncomingHttpHeaders): boolean {
  const given = headers[LOOP]
  if (given === undefined) return false
  // The names are separated by commas, their parameters by semicolons.
  const names = String(given).split(/[\s,;]+/)
  return names.filter((name) => name === loopId(installation)).length > 1
}

function loopId(installation: string): string {
  return `gatehouse-${installation}`
}
