import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import * as Type from '../../../../kernel/schema.ts'
import { redactLine } from '../../redact.ts'
import { addressOf, defineCheck, failed, Host, passed, Port } from './check.ts'

/** Characters of what a port says that are read, and that are quoted. */
const MAX_GREETING = 4_096
const MAX_QUOTED = 100

/** A port accepts connections, and says what is expected. */
export const tcpCheck = defineCheck('tcp', {
  takes: {
    host: Host,
    port: Port,
    /** Sent first, for services that do not greet. */
    send: Type.Optional(Type.String({ maxLength: 1_000 })),
    contains: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })),
  },
  level: 'critical',
  nameOf: ({ host, port }) => `tcp ${host}:${port}`,
  peerOf: ({ host, port }) => `${host}:${port}`,
  mistakeOf({ send, contains }) {
    if (send === undefined || contains !== undefined) return undefined
    return ['/contains', 'must be there with send']
  },
  async run({ host, port, send, contains }, { signal, redact }) {
    const socket = connect({ host: addressOf(host), port })
    try {
      await once(socket, 'connect', { signal })
      if (contains === undefined) return passed('takes connections')
      if (send !== undefined) socket.write(send)
      const text = await readGreeting(socket, contains, signal)
      const quoted = text === '' ? 'nothing' : `"${redactLine(text, MAX_QUOTED, redact)}"`
      const message = `takes connections and says ${quoted}`
      return text.includes(contains)
        ? passed(message)
        : failed(`${message}, expected "${contains}"`)
    } finally {
      socket.destroy()
    }
  },
})

/** What a port says until it has said what is wanted, says no more, or the time is over. */
function readGreeting(socket: Socket, wanted: string, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (more: string) => {
    text += more
    if (text.includes(wanted) || text.length >= MAX_GREETING) resolve(text)
  })
  for (const event of ['end', 'close']) socket.on(event, () => resolve(text))
  socket.on('error', reject)
  const give = (): void => (text === '' ? reject(signal.reason) : resolve(text))
  signal.addEventListener('abort', give, { once: true })
  return promise
}
