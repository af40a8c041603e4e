import type { IncomingHttpHeaders } from 'node:http'

// Deliveries that we send name this installation by a random text in the database, which a backup
// carries. By it a receiver tells two installations apart, and we recognise a delivery that comes
// back.

/** The header in which each server that passes a request on adds its name (RFC 8586). */
const LOOP = 'cdn-loop'

/**
 * The key of a delivery at its receiver: the same for each try, and unique for each event of each
 * installation. After a restore an id may belong to another event than before, so the time is part
 * of the key.
 */
export function deliveryKey(
  installation: string,
  { id, received_at }: { id: number; received_at: Date },
): string {
  return `${installation}-${id}-${received_at.getTime().toString(36)}`
}

/** The header of an event that is sent on: the servers before us, then this installation. */
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
