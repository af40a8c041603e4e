import type { AddressInfo, ListenOptions, Server, Socket } from 'node:net'
import type { Owner } from '../../helpers/owner.ts'

/** Waits until a server listens at a port of its own, or at this place; gives the port. It ends with the test. */
export async function listen(
  t: Owner,
  server: Server,
  place: ListenOptions = { port: 0, host: '127.0.0.1' },
) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(place, resolve))
  return (server.address() as AddressInfo).port
}
