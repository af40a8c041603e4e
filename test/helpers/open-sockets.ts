import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Owner } from './owner.ts'

/** A connection that a test holds open, and what came on it. */
export type HeldSocket = {
  readonly socket: Socket
  /** The start of what came, 4 KiB at most. */
  readonly text: string
  /** The other side has ended it, in whichever way. */
  readonly closed: boolean
}

/** Opens connections, `atOnce` at a time, each with `first` sent; they are destroyed with the test. */
export async function openSockets(
  t: Owner,
  port: number,
  count: number,
  { first = '', atOnce = 100 }: { first?: string | Uint8Array; atOnce?: number } = {},
): Promise<readonly HeldSocket[]> {
  const held: HeldSocket[] = []
  t.teardown(() => {
    for (const { socket } of held) socket.destroy()
  })
  while (held.length < count) {
    const batch = Array.from({ length: Math.min(atOnce, count - held.length) }, () =>
      openSocket(port, first),
    )
    held.push(...(await Promise.all(batch)))
  }
  return held
}

function openSocket(port: number, first: string | Uint8Array): Promise<HeldSocket> {
  const opened = Promise.withResolvers<HeldSocket>()
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const one = { socket, text: '', closed: false }
  socket.setEncoding('latin1').on('data', (more: string) => {
    if (one.text.length < 4_096) one.text += more
  })
  // A reset is an end like any other here.
  socket.on('error', () => undefined)
  socket.on('close', () => {
    one.closed = true
    opened.resolve(one)
  })
  socket.on('connect', () => {
    if (first.length > 0) socket.write(first)
    opened.resolve(one)
  })
  return opened.promise
}
