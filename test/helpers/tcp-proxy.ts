import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Owner } from './owner.ts'
import type { Random } from './until.ts'

/** Which way bytes go. */
type Way = 'to-server' | 'to-client'

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>

interface Pair {
  client: Socket
  server: Socket
  /** Bytes that may still go to the client. */
  left: number
  lost: boolean
}

const BOTH: readonly Way[] = ['to-server', 'to-client']

/**
 * Starts a proxy in front of the server of a URL. It does to connections what networks do to them, and ends with the
 * test.
 */
export async function startTcpProxy(t: Owner, target: string) {
  const { hostname: host, port } = new URL(target)
  /** All there are, also of connections that count no more. */
  const sockets = new Set<Socket>()
  const open = new Set<Pair>()
  let stalled: readonly Way[] = []
  let goesOn = Promise.withResolvers<void>()
  let pieces: { random: Random; most: number } | undefined
  let hangsUp = false
  let accepted = 0

  function accept(client: Socket) {
    accepted++
    hold(client)
    if (hangsUp) return void client.resume().end()
    const server = connect({ host, port: Number(port), noDelay: true, allowHalfOpen: true })
    hold(server)
    const pair = { client, server, left: Number.POSITIVE_INFINITY, lost: false }
    open.add(pair)
    client.on('error', () => resetBoth(pair))
    server.on('error', () => resetBoth(pair))
    void Promise.all([carry(pair, 'to-server'), carry(pair, 'to-client')]).then(() =>
      open.delete(pair),
    )
  }

  function hold(socket: Socket) {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }

  function resetBoth(pair: Pair) {
    // A side of a lost connection hears nothing of the other one's end.
    if (pair.lost) return
    open.delete(pair)
    for (const socket of [pair.client, pair.server]) {
      // Node can't reset one that is just being ended: it would keep the process for ever, even on its way out.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  async function carry(pair: Pair, way: Way) {
    const [from, to] = sides(pair, way)
    try {
      for await (const chunk of from.iterator({ destroyOnReturn: false })) {
        for (const piece of piecesOf(chunk)) {
          await leave(pair, way)
          const whole = way === 'to-server' || piece.length <= pair.left
          const fits = to.write(whole ? piece : piece.subarray(0, pair.left))
          if (!whole) return resetBoth(pair)
          if (way === 'to-client') pair.left -= piece.length
          if (!fits) await once(to, 'drain')
          if (pieces !== undefined) await nextTurn()
        }
      }
      await leave(pair, way)
      to.end()
    } catch {
      resetBoth(pair)
    }
  }

  /** Resolves when bytes may go this way. */
  async function leave(pair: Pair, way: Way) {
    while (stalled.includes(way)) await goesOn.promise
    if (pair.lost) await new Promise(() => undefined)
  }

  function piecesOf(chunk: Buffer) {
    if (pieces === undefined) return [chunk]
    const cut: Buffer[] = []
    for (let at = 0; at < chunk.length;) {
      const end = at + 1 + pieces.random(pieces.most)
      cut.push(chunk.subarray(at, end))
      at = end
    }
    return cut
  }

  async function listen(at: number) {
    const server = createServer({ noDelay: true, allowHalfOpen: true }, accept)
    await once(server.listen(at, '127.0.0.1'), 'listening')
    return server
  }

  let listener: Server | undefined = await listen(0)
  const address = listener.address()
  const own = typeof address === 'object' && address !== null ? address.port : 0
  t.teardown(() => {
    listener?.close()
    for (const socket of sockets) socket.destroy()
  })

  return {
    /** The same address, through the proxy. */
    through(url: string) {
      const address = new URL(url)
      address.port = String(own)
      return address.href
    },
    /** Connections that are open now, without those that were lost. */
    get open() {
      return open.size
    },
    /** Connections accepted so far. */
    get accepted() {
      return accepted
    },
    /** Ends every fault: what was stalled goes on, whole, and new connections are accepted. */
    async pass() {
      stalled = []
      pieces = undefined
      hangsUp = false
      for (const pair of open) pair.left = Number.POSITIVE_INFINITY
      goesOn.resolve()
      goesOn = Promise.withResolvers()
      listener ??= await listen(own)
    },
    /** Holds bytes up, one way or both, also of new connections. */
    stall(...ways: readonly Way[]) {
      stalled = ways.length === 0 ? BOTH : ways
    },
    /** Loses what is open without a word, as a firewall that was restarted: it never goes on. */
    lose() {
      for (const pair of open) pair.lost = true
      open.clear()
    },
    /** Resets what is open (RST). */
    reset() {
      for (const pair of open) resetBoth(pair)
    },
    /** Ends one way or both of what is open, in order (FIN). */
    end(...ways: readonly Way[]) {
      for (const way of ways.length === 0 ? BOTH : ways) {
        for (const pair of open) sides(pair, way)[1].end()
      }
    },
    /** Resets each connection that is open once it has brought that many more bytes to the client. */
    cutAfter(bytes: number) {
      for (const pair of open) pair.left = bytes
    },
    /** Makes packets of up to `most` bytes of every packet, also of new connections. */
    split(random: Random, most: number) {
      pieces = { random, most }
    },
    /** Takes no new connections: they are refused, or ended when they are hardly there. */
    refuse(how: 'refused' | 'ended' = 'refused') {
      hangsUp = how === 'ended'
      if (hangsUp) return
      listener?.close()
      listener = undefined
    },
  }
}

/** Where bytes come from and where they go to. */
function sides({ client, server }: Pair, way: Way): readonly [Socket, Socket] {
  return way === 'to-server' ? [client, server] : [server, client]
}
