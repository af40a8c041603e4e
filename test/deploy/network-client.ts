import { once } from 'node:events'
import { connect } from 'node:net'
import type { NetworkCall } from './own-network.ts'

/** Run by `callInside`: calls a server as it is told to, and prints the answer. */
const { host, port, from, text, resets, idle = 0 }: NetworkCall = JSON.parse(process.argv[2] ?? '')

/** Writes, and resets the connection (SO_LINGER with 0 seconds) as soon as the bytes are with the kernel. */
async function reset() {
  const socket = connect({ host, port, localAddress: from })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text, () => socket.resetAndDestroy())
  await once(socket, 'close')
}

if (resets !== undefined) {
  await Promise.all(Array.from({ length: resets }, reset))
} else {
  const held = Array.from({ length: idle }, () => connect({ host, port, localAddress: from }))
  for (const socket of held) socket.on('error', () => undefined)
  await Promise.all(held.map((socket) => once(socket, 'connect')))
  const socket = connect({ host, port, localAddress: from })
  socket.setEncoding('utf8').on('data', (chunk: string) => process.stdout.write(chunk))
  socket.write(text)
  await once(socket, 'close')
  for (const one of held) one.destroy()
}
