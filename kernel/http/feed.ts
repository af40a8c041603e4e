import type { Sink } from './reply.ts'
import { encodePosition, encodeRetry, KEEP_ALIVE } from './sse.ts'

/** What a read of a log gives. */
export interface Page<Item> {
  items: readonly Item[]
  /** A frame that one client gets before the items, such as what it has missed. */
  notice?: Buffer | undefined
  /** The last frame of every client: these are the last items that the log will ever have. */
  end?: Buffer | undefined
}

/** Reads the items above a position in order; fewer than `limit` means that no more are there. */
export type ReadPage<Item> = (after: number, limit: number) => Promise<Page<Item>>

/** A log that grows at its end, and how its items are sent. Positions become visible in order. */
export interface FeedOptions<Item> {
  /** The highest position that is or was in the log. */
  newest: () => Promise<number>
  read: ReadPage<Item>
  positionOf: (item: Item) => number
  /** An item as an event of the stream, with its position as id. */
  encode: (item: Item) => Buffer
  /** Items per read; a page must fit into `MAX_UNSENT` bytes. */
  pageSize: number
  /** After how long a client comes back. */
  retryMs: () => number
  /** Called when the last client has left. */
  idle?: () => void
  /** Clients and watchers were given items that have just come. */
  published?: (items: readonly Item[]) => void
  /** A client was cut off because it does not read. */
  cutOff: () => void
  /** The log could not be read: the next `refresh` tries again. */
  failed: (error: unknown) => void
}

/** A program's part that follows a feed. */
export interface Watcher<Item> {
  items: (items: readonly Item[]) => void
  /** The log has ended, or the program stops. */
  over: () => void
}

/** A client of a stream, and what is special about it. */
export interface Follow<Item> {
  /** Finds the position after which the client is served; it may write what comes first. */
  begin: () => Promise<number>
  /** How the client is served until it has caught up; `read` of the feed unless given. */
  replay?: ReadPage<Item>
  /** The items that the client wants; all of them when undefined. */
  wants?: ((item: Item) => boolean) | undefined
}

/** Streams one log to any number of clients: it is read once, and each item is encoded once. */
export type Feed<Item> = ReturnType<typeof createFeed<Item>>

interface Client<Item> {
  feed: FeedState<Item>
  sink: Sink
  wants: ((item: Item) => boolean) | undefined
  /** `behind`: it is replayed. `following`: it is sent what the feed reads. */
  state: 'beginning' | 'behind' | 'following' | 'gone'
  /** The client knows of every item up to here. */
  position: number
}

/** A feed's log, the position of its reader, and its clients. */
interface FeedState<Item> extends FeedOptions<Item> {
  clients: Set<Client<Item>>
  watchers: Set<Watcher<Item>>
  /** Position of the last item that followers and watchers were given. */
  position: number
  /** Resolves when the position is known. Undefined without clients. */
  starting?: Promise<void> | undefined
  /** `reading, more came`: the log may have grown since the read began. */
  reader: 'idle' | 'reading' | 'reading, more came'
  /** The program stops: nobody new is served. */
  closed: boolean
}

/** A client that leaves more bytes than this unsent is cut off and resumes by id. */
const MAX_UNSENT = 1024 * 1024

/**
 * A client is replayed until it stands where the feed stands, and follows the feed from there: no
 * hole, no repeat. Without clients and watchers nothing is read.
 */
export function createFeed<Item>(options: FeedOptions<Item>) {
  const clients = new Set<Client<Item>>()
  const watchers = new Set<Watcher<Item>>()
  const state = { position: 0, reader: 'idle', closed: false } as const
  const feed: FeedState<Item> = { ...options, clients, watchers, ...state }
  return {
    get clients() {
      return clients.size
    },
    /**
     * Serves a client until it is gone. Rejects when it can't be replayed; it is still connected
     * then.
     */
    follow: (sink: Sink, client: Follow<Item>) => follow(feed, sink, client),
    /** Tells a watcher of every item that is stored once `ready` has resolved. */
    watch: (watcher: Watcher<Item>) => watch(feed, watcher),
    /** The log's pages from above a position, and those to come, until its end or the abort. */
    pages: (after: number, gone: AbortSignal) => pages(feed, after, gone),
    /** The log may have grown, or may have ended. */
    refresh: () => void refresh(feed),
    /** Sends a frame without position to every client that has begun. */
    send(frame: Buffer) {
      for (const client of clients) if (client.state !== 'beginning') write(client, frame)
    },
    keepAlive() {
      for (const client of clients) {
        // A filtered stream may be silent for long; its client resumes from here all the same.
        const moves = client.state === 'following' && client.wants !== undefined
        write(client, moves ? encodePosition(client.position) : KEEP_ALIVE)
      }
    },
    /** Ends every stream in order, with the delay after which the client comes back. */
    close() {
      feed.closed = true
      for (const watcher of watchers) watcher.over()
      const retry = encodeRetry(options.retryMs())
      for (const { sink } of clients) sink.end(retry)
    },
  }
}

/** The first client or watcher starts the feed at the newest item. */
function start<Item>(feed: FeedState<Item>) {
  feed.starting ??= feed.newest().then(
    (newest) => {
      feed.position = Math.max(feed.position, newest)
    },
    (error: unknown) => {
      feed.starting = undefined
      throw error
    },
  )
  return feed.starting
}

function stopUnused<Item>(feed: FeedState<Item>) {
  if (feed.clients.size > 0 || feed.watchers.size > 0) return
  feed.starting = undefined
  feed.idle?.()
}

function leave<Item>(client: Client<Item>) {
  if (client.state === 'gone') return
  client.state = 'gone'
  client.feed.clients.delete(client)
  stopUnused(client.feed)
}

function write<Item>(client: Client<Item>, bytes: Buffer) {
  if (client.state === 'gone') return
  client.sink.write(bytes)
  if (client.sink.unsent <= MAX_UNSENT) return
  client.feed.cutOff()
  leave(client)
  client.sink.destroy()
}

async function refresh<Item>(feed: FeedState<Item>) {
  if (feed.reader !== 'idle') feed.reader = 'reading, more came'
  if (feed.reader !== 'idle' || feed.clients.size + feed.watchers.size === 0) return
  feed.reader = 'reading'
  try {
    await start(feed)
    let page: Page<Item>
    do {
      feed.reader = 'reading'
      page = await feed.read(feed.position, feed.pageSize)
      publish(feed, page.items)
      if (page.end !== undefined) finish(feed, page.end)
    } while (page.items.length === feed.pageSize || moreCame(feed))
  } catch (error) {
    feed.failed(error)
  } finally {
    feed.reader = 'idle'
  }
}

function moreCame<Item>({ reader }: FeedState<Item>) {
  return reader === 'reading, more came'
}

function publish<Item>(feed: FeedState<Item>, items: readonly Item[]) {
  const [first, last] = [items[0], items.at(-1)]
  if (first === undefined || last === undefined) return
  feed.position = feed.positionOf(last)
  for (const watcher of feed.watchers) watcher.items(items)
  if (feed.clients.size > 0) sendItems(feed, items, feed.positionOf(first))
  feed.published?.(items)
}

function sendItems<Item>(feed: FeedState<Item>, items: readonly Item[], first: number) {
  const frames = items.map(feed.encode)
  const all = Buffer.concat(frames)
  for (const client of feed.clients) {
    if (client.state !== 'following') continue
    if (client.wants === undefined && client.position < first) write(client, all)
    else {
      for (const [i, item] of items.entries()) {
        const isNew = feed.positionOf(item) > client.position
        if (isNew && isWanted(client, item)) write(client, frames[i] ?? all)
      }
    }
    client.position = Math.max(client.position, feed.position)
  }
}

function finish<Item>(feed: FeedState<Item>, end: Buffer) {
  for (const watcher of feed.watchers) watcher.over()
  for (const client of feed.clients) {
    if (client.state !== 'following') continue
    leave(client)
    client.sink.end(end)
  }
}

async function follow<Item>(feed: FeedState<Item>, sink: Sink, given: Follow<Item>) {
  const { begin, replay = feed.read, wants } = given
  const retry = encodeRetry(feed.retryMs())
  // Not a refusal, after which a browser would never come back.
  if (feed.closed) return sink.end(retry)
  const client: Client<Item> = { feed, sink, wants, state: 'beginning', position: 0 }
  feed.clients.add(client)
  sink.onClose(() => leave(client))
  sink.write(retry)
  await start(feed)
  client.position = await begin()
  if (!sink.closed) await catchUp(client, replay)
}

async function catchUp<Item>(client: Client<Item>, replay: ReadPage<Item>) {
  const { feed, sink } = client
  client.state = 'behind'
  while (!sink.closed) {
    if (client.position >= feed.position) {
      client.state = 'following'
      void refresh(feed)
      return
    }
    const reached = feed.position
    const { items, notice, end } = await replay(client.position, feed.pageSize)
    if (sink.closed) return
    const frames = items.filter((item) => isWanted(client, item)).map(feed.encode)
    if (notice !== undefined) frames.unshift(notice)
    if (frames.length > 0) sink.write(Buffer.concat(frames))
    if (end !== undefined) {
      leave(client)
      return sink.end(end)
    }
    const last = items.at(-1)
    // Without items, nothing is left between the two positions.
    client.position =
      last === undefined ? Math.max(client.position, reached) : feed.positionOf(last)
    await sink.drained()
  }
}

function watch<Item>(feed: FeedState<Item>, watcher: Watcher<Item>) {
  feed.watchers.add(watcher)
  if (feed.closed) watcher.over()
  const stop = () => {
    if (feed.watchers.delete(watcher)) stopUnused(feed)
  }
  return { ready: start(feed), stop }
}

async function* pages<Item>(feed: FeedState<Item>, after: number, gone: AbortSignal) {
  let change = Promise.withResolvers<void>()
  const wake = () => change.resolve()
  const { ready, stop } = watch(feed, { items: wake, over: wake })
  gone.addEventListener('abort', wake, { once: true })
  try {
    await ready
    for (let at = after; !gone.aborted;) {
      change = Promise.withResolvers<void>()
      const page = await feed.read(at, feed.pageSize)
      yield page
      if (page.end !== undefined) return
      const last = page.items.at(-1)
      if (last !== undefined) at = feed.positionOf(last)
      if (page.items.length < feed.pageSize && !gone.aborted) await change.promise
    }
  } finally {
    gone.removeEventListener('abort', wake)
    stop()
  }
}

function isWanted<Item>({ wants }: Client<Item>, item: Item) {
  return wants === undefined || wants(item)
}
