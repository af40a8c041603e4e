import type { Sink } from './reply.ts'
import { encodePosition, encodeRetry, KEEP_ALIVE } from './sse.ts'

/** What a read of a log gives. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /** A frame that one client gets before the items, such as what it has missed. */
  readonly notice?: Buffer | undefined
  /** The last frame of every client: these are the last items that the log will ever have. */
  readonly end?: Buffer | undefined
}

/** Reads the items above a position in order; fewer than `limit` means that no more are there. */
export type ReadPage<Item> = (after: number, limit: number) => Promise<Page<Item>>

/** A log that grows at its end, and how its items are sent. Positions become visible in order. */
export interface FeedOptions<Item> {
  /** The highest position that is or was in the log. */
  readonly newest: () => Promise<number>
  readonly read: ReadPage<Item>
  readonly positionOf: (item: Item) => number
  /** An item as an event of the stream, with its position as id. */
  readonly encode: (item: Item) => Buffer
  /** Items per read; a page must fit into `MAX_UNSENT` bytes. */
  readonly pageSize: number
  /** After how long a client comes back. */
  readonly retryMs: () => number
  /** Nobody is served any more. */
  readonly idle?: () => void
  readonly published?: () => void
  /** A client was cut off because it does not read. */
  readonly cutOff: () => void
  /** The log could not be read: the next `refresh` tries again. */
  readonly failed: (error: unknown) => void
}

/** A program's part that follows a feed. */
export interface Watcher<Item> {
  readonly items: (items: readonly Item[]) => void
  /** The log has ended, or the program stops. */
  readonly over: () => void
}

/** A client of a stream, and what is special about it. */
export interface Follow<Item> {
  /** Finds the position after which the client is served; it may write what comes first. */
  readonly begin: () => Promise<number>
  /** How the client is served until it has caught up; `read` of the feed unless given. */
  readonly replay?: ReadPage<Item>
  /** The items that the client wants; all of them when undefined. */
  readonly wants?: ((item: Item) => boolean) | undefined
}

/** Streams one log to any number of clients: it is read once, and each item is encoded once. */
export interface Feed<Item> {
  readonly clients: number
  /**
   * Serves a client until it is gone. Rejects when it can't be replayed; it is still connected
   * then.
   */
  follow(sink: Sink, client: Follow<Item>): Promise<void>
  /** Tells a watcher of every item that is stored once `ready` has resolved. */
  watch(watcher: Watcher<Item>): { readonly ready: Promise<void>; readonly stop: () => void }
  /** The log's pages from above a position, and those to come, until its end or the abort. */
  pages(after: number, gone: AbortSignal): AsyncGenerator<Page<Item>>
  /** The log may have grown, or may have ended. */
  refresh(): void
  /** Sends a frame without position to every client that has begun. */
  send(frame: Buffer): void
  keepAlive(): void
  /** Ends every stream in order, with the delay after which the client comes back. Others go on. */
  close(): void
}

interface Client<Item> {
  readonly sink: Sink
  readonly wants: ((item: Item) => boolean) | undefined
  /** `behind`: it is replayed. `following`: it is sent what the feed reads. */
  state: 'beginning' | 'behind' | 'following' | 'gone'
  /** The client knows of every item up to here. */
  position: number
}

/** A client that leaves more bytes than this unsent is cut off and resumes by id. */
const MAX_UNSENT = 1024 * 1024

/**
 * A client is replayed until it stands where the feed stands, and follows the feed from there: no
 * hole, no repeat. Without clients and watchers nothing is read.
 */
export function createFeed<Item>(options: FeedOptions<Item>): Feed<Item> {
  const { read, positionOf, encode, pageSize } = options
  const clients = new Set<Client<Item>>()
  const watchers = new Set<Watcher<Item>>()
  /** Position of the last item that followers and watchers were given. */
  let position = 0
  let starting: Promise<void> | undefined
  let reader: 'idle' | 'reading' | 'reading, more came' = 'idle'
  let closed = false

  /** The first client or watcher starts the feed at the newest item. */
  function start(): Promise<void> {
    starting ??= options.newest().then(
      (newest) => {
        position = Math.max(position, newest)
      },
      (error: unknown) => {
        starting = undefined
        throw error
      },
    )
    return starting
  }

  function stopUnused(): void {
    if (clients.size > 0 || watchers.size > 0) return
    starting = undefined
    options.idle?.()
  }

  function leave(client: Client<Item>): void {
    if (client.state === 'gone') return
    client.state = 'gone'
    clients.delete(client)
    stopUnused()
  }

  function write(client: Client<Item>, bytes: Buffer): void {
    if (client.state === 'gone') return
    client.sink.write(bytes)
    if (client.sink.unsent <= MAX_UNSENT) return
    options.cutOff()
    leave(client)
    client.sink.destroy()
  }

  async function refresh(): Promise<void> {
    if (reader !== 'idle') reader = 'reading, more came'
    if (reader !== 'idle' || clients.size + watchers.size === 0) return
    reader = 'reading'
    try {
      await start()
      let page: Page<Item>
      do {
        reader = 'reading'
        page = await read(position, pageSize)
        publish(page.items)
        if (page.end !== undefined) finish(page.end)
      } while (page.items.length === pageSize || moreCame())
    } catch (error) {
      options.failed(error)
    } finally {
      reader = 'idle'
    }
  }

  function moreCame(): boolean {
    return reader === 'reading, more came'
  }

  function publish(items: readonly Item[]): void {
    const [first, last] = [items[0], items.at(-1)]
    if (first === undefined || last === undefined) return
    position = positionOf(last)
    for (const watcher of watchers) watcher.items(items)
    if (clients.size > 0) sendItems(items, positionOf(first))
    options.published?.()
  }

  function sendItems(items: readonly Item[], first: number): void {
    const frames = items.map(encode)
    const all = Buffer.concat(frames)
    for (const client of clients) {
      if (client.state !== 'following') continue
      if (client.wants === undefined && client.position < first) write(client, all)
      else {
        for (const [i, item] of items.entries()) {
          const isNew = positionOf(item) > client.position
          if (isNew && isWanted(client, item)) write(client, frames[i] ?? all)
        }
      }
      client.position = Math.max(client.position, position)
    }
  }

  function finish(end: Buffer): void {
    for (const watcher of watchers) watcher.over()
    for (const client of clients) {
      if (client.state !== 'following') continue
      leave(client)
      client.sink.end(end)
    }
  }

  async function catchUp(client: Client<Item>, replay: ReadPage<Item>): Promise<void> {
    const { sink } = client
    client.state = 'behind'
    while (!sink.closed) {
      if (client.position >= position) {
        client.state = 'following'
        void refresh()
        return
      }
      const reached = position
      const { items, notice, end } = await replay(client.position, pageSize)
      if (sink.closed) return
      const frames = items.filter((item) => isWanted(client, item)).map(encode)
      if (notice !== undefined) frames.unshift(notice)
      if (frames.length > 0) sink.write(Buffer.concat(frames))
      if (end !== undefined) {
        leave(client)
        return sink.end(end)
      }
      const last = items.at(-1)
      // Without items, nothing is left between the two positions.
      client.position = last === undefined ? Math.max(client.position, reached) : positionOf(last)
      await sink.drained()
    }
  }

  function watch(watcher: Watcher<Item>): ReturnType<Feed<Item>['watch']> {
    watchers.add(watcher)
    if (closed) watcher.over()
    const stop = (): void => {
      if (watchers.delete(watcher)) stopUnused()
    }
    return { ready: start(), stop }
  }

  return {
    get clients() {
      return clients.size
    },
    async follow(sink, { begin, replay = read, wants }) {
      const retry = encodeRetry(options.retryMs())
      // Not a refusal, after which a browser would never come back.
      if (closed) return sink.end(retry)
      const client: Client<Item> = { sink, wants, state: 'beginning', position: 0 }
      clients.add(client)
      sink.onClose(() => leave(client))
      sink.write(retry)
      await start()
      client.position = await begin()
      if (!sink.closed) await catchUp(client, replay)
    },
    watch,
    async *pages(after, gone) {
      let change = Promise.withResolvers<void>()
      const wake = (): void => change.resolve()
      const { ready, stop } = watch({ items: wake, over: wake })
      gone.addEventListener('abort', wake, { once: true })
      try {
        await ready
        for (let at = after; !gone.aborted;) {
          change = Promise.withResolvers<void>()
          const page = await read(at, pageSize)
          yield page
          if (page.end !== undefined) return
          const last = page.items.at(-1)
          if (last !== undefined) at = positionOf(last)
          if (page.items.length < pageSize && !gone.aborted) await change.promise
        }
      } finally {
        gone.removeEventListener('abort', wake)
        stop()
      }
    },
    refresh: () => void refresh(),
    send(frame) {
      for (const client of clients) if (client.state !== 'beginning') write(client, frame)
    },
    keepAlive() {
      for (const client of clients) {
        // A filtered stream may be silent for long; its client resumes from here all the same.
        const moves = client.state === 'following' && client.wants !== undefined
        write(client, moves ? encodePosition(client.position) : KEEP_ALIVE)
      }
    },
    close() {
      closed = true
      for (const watcher of watchers) watcher.over()
      const retry = encodeRetry(options.retryMs())
      for (const { sink } of clients) sink.end(retry)
    },
  }
}

function isWanted<Item>({ wants }: Client<Item>, item: Item): boolean {
  return wants === undefined || wants(item)
}
