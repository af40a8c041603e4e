/** The three services, by the names that the ready line and the command line use. */
export const SERVICES = ['hooks', 'links', 'ops'] as const

/** A service's name. */
export type Service = (typeof SERVICES)[number]

/** Addresses of the services that a ready line names. */
export type Addresses = Partial<Record<Service, string>>

const READY = /^gatehouse \S+ ready((?: [a-z]+=\S+)+)$/m

/** Reads `gatehouse 0.1.0 ready hooks=http://… links=http://… ops=http://…` out of a server's output. */
export function parseReady(stdout: string): Addresses | undefined {
  const pairs = READY.exec(stdout)?.[1]
  // A line that is still arriving would give a cut address.
  if (pairs === undefined || !stdout.slice(stdout.indexOf(pairs)).includes('\n')) return undefined
  const addresses: Addresses = {}
  for (const pair of pairs.trim().split(' ')) {
    const [name, address] = pair.split('=', 2)
    const service = SERVICES.find((known) => known === name)
    if (service !== undefined && address !== undefined) addresses[service] = address
  }
  return addresses
}
