import { once } from 'node:events'
import type { AddressInfo, ListenOptions, Server, Socket } from 'node:net'
import type { Owner } from './owner.ts'

/** Waits until a server listens at a port of its own, or at this place; gives the port. It ends with the test. */
export async function listen(
  t: Owner,
  server: Server,
  place: ListenOptions = { port: 0, host: '127.0.0.1' },
) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  await once(server.listen(place), 'listening')
  return (server.address() as AddressInfo).port
}
