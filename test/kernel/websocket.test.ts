import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { t, type Test } from 'tap'
import { type Channel, acceptChannel, connectChannel } from '../../kernel/http/websocket.ts'
import type { Clock } from '../../kernel/time.ts'
import { listen } from '../helpers/listen.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

/** A clock whose timers run when the test says so. */
function manualClock(): Clock & { beat(): void; timers: number } {
  const timers = new Set<() => void>()
  return {
    now: () => new Date(0),
    elapsed: () => 0,
    every(_, callback) {
      timers.add(callback)
      return () => timers.delete(callback)
    },
    beat: () => [...timers].forEach((callback) => callback()),
    get timers() {
      return timers.size
    },
  }
}

async function startChannels(t: Test) {
  const clock = manualClock()
  /** The server's side of the connections so far. */
  const channels: Channel[] = []
  const sockets: Socket[] = []
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    const open = (channel: Channel) => void channels.push(channel)
    const reply = { status: 101, protocol: 'test', maxMessage: 64 * 1024 * 1024, open } as const
    acceptChannel(request, { socket, head }, reply, 'id', clock)
  })
  server.on('connection', (socket) => sockets.push(socket))
  const port = await listen(t, server)
  return { url: new URL(`ws://127.0.0.1:${port}/`), clock, sockets, channels }
}

function open(url: URL, clock: Clock) {
  const channel = connectChannel({ url, protocol: 'test', maxMessage: 64 * 1024 * 1024, clock })
  const heard: (string | Buffer)[] = []
  channel.onMessage((message) => heard.push(message))
  return { channel, heard }
}

t.test('both sides give up on a connection that is silent', async (t) => {
  const server = await startChannels(t)
  // A network that forgets the connection without a word.
  const network = await startTcpProxy(t, server.url.href)
  const clock = manualClock()
  const { channel, heard } = open(new URL(network.through(server.url.href)), clock)
  const far = await until(() => server.channels[0], 'the connection')
  far.send('hello')
  await until(() => heard.length === 1, 'its first message')

  /** A beat of both clocks, and the time for what it set off to come across. */
  async function beat() {
    const bytes = server.sockets[0]?.bytesRead ?? 0
    clock.beat()
    server.clock.beat()
    await until(() => (server.sockets[0]?.bytesRead ?? 0) > bytes, 'a ping or its answer')
  }
  for (let n = 0; n < 6; n++) await beat()
  far.send('still there')
  await until(() => heard.length === 2, 'its second message')

  network.lose()
  for (let n = 0; n < 3; n++) clock.beat()
  for (let n = 0; n < 3; n++) server.clock.beat()
  const silent = { kind: 'lost', reason: 'no sign of life from the other side' }
  t.same(await channel.ended, silent)
  t.same(await far.ended, silent)
  t.same([clock.timers, server.clock.timers], [0, 0], 'nothing beats for them any more')
})
