import { rmSync, statSync } from 'node:fs'
import { connect, type ListenOptions } from 'node:net'
import { codeOf } from '../log.ts'

/** Where a listener listens; systemd passes the socket of an `fd`. */
export type Address =
  | { kind: 'tcp'; host: string; port: number }
  | { kind: 'unix'; path: string; mode: number }
  | { kind: 'fd'; name: string }

/** Parses an address; throws a SyntaxError that says what is missing. */
export function parseAddress(text: string): Address {
  const [, path, mode = '700'] = /^unix:(\/[^?]*)(?:\?mode=0?([67][0-7]{2}))?$/.exec(text) ?? []
  if (path !== undefined) return { kind: 'unix', path, mode: Number.parseInt(mode, 8) }
  if (/^fd:[\w.-]+$/.test(text)) return { kind: 'fd', name: text.slice(3) }
  const parts = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text)
  const host = parts?.[1] ?? parts?.[2]
  const port = Number(parts?.[3])
  if (host === undefined || port > 65535) {
    throw new SyntaxError('it has no port from 0 to 65535')
  }
  return { kind: 'tcp', host, port }
}

/**
 * Connections that may wait to be accepted, which is where they are while the process behind a
 * socket of systemd is replaced: Node's own 511 would take the place of what the unit says. The
 * kernel caps it.
 */
const BACKLOG = 4_096

/**
 * What `net.Server.listen` takes for an address. `inherited` are the names of the sockets that
 * systemd passed (`LISTEN_FDNAMES`), the first of which is file descriptor 3.
 */
export function listenOptions(
  address: Address,
  inherited: readonly string[],
): ListenOptions & { fd?: number } {
  if (address.kind === 'tcp') return { host: address.host, port: address.port, backlog: BACKLOG }
  if (address.kind === 'unix') return { path: address.path, backlog: BACKLOG }
  const index = inherited.indexOf(address.name)
  if (index < 0) {
    throw new Error(
      `No socket named "${address.name}" was passed; ` +
        `set FileDescriptorName=${address.name} in the socket unit`,
    )
  }
  return { fd: index + 3, backlog: BACKLOG }
}

/**
 * Removes the socket that a killed server left, because it would count as an address in use. One
 * on which somebody listens stays, and so does a file of any other kind.
 */
export async function removeDeadSocket(path: string): Promise<void> {
  if (statSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return
  if (await isDeadSocket(path)) rmSync(path, { force: true })
}

/** Whether nobody listens on a socket any more. */
export async function isDeadSocket(path: string): Promise<boolean> {
  const dead = Promise.withResolvers<boolean>()
  const socket = connect(path, () => dead.resolve(false))
  socket.on('error', (error) => dead.resolve(codeOf(error) === 'ECONNREFUSED'))
  const answer = await dead.promise
  socket.destroy()
  return answer
}
