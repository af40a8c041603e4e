import { Duplex } from 'node:stream'

/** Types of messages that matter here (PostgreSQL protocol 3.0, "Message Formats"). */
const QUERY = 0x51
const SYNC = 0x53
const FLUSH = 0x48
/** A client sends one of these last and then waits for the answer. */
const ENDS: ReadonlySet<number> = new Set([QUERY, SYNC, FLUSH])
const PROTOCOL_3 = 3 << 16

/**
 * Makes connections to PostgreSQL's one session, one after the other. `greeting` is what the
 * server says to a client that has connected, `run` runs messages up to one that asks for an
 * answer.
 */
export function createConnections(
  greeting: Uint8Array,
  run: (bytes: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>,
) {
  let current: Duplex | undefined
  let running = Promise.resolve()

  /** Messages run in the order in which they come, unless their connection has ended by then. */
  function enqueue(
    socket: Duplex,
    bytes: Uint8Array<ArrayBuffer>,
    deliver?: (answer: Uint8Array) => void,
  ): void {
    running = running.then(async () => {
      if (socket.destroyed) return
      // If the engine fails, it ends the connection by close().
      const answer = await run(bytes).catch(() => undefined)
      if (answer !== undefined && !socket.destroyed) deliver?.(answer)
    })
  }

  /**
   * Opens a connection and ends the previous one: its transaction is rolled back, its prepared
   * statements are freed. LISTEN stays.
   */
  function connect() {
    current?.destroy()
    const socket = createSocket(greeting, (bytes) => {
      enqueue(socket, bytes, (answer) => socket.push(answer))
    })
    // The previous connection may have ended in the middle of a statement, hence the Sync.
    const reset = [message(SYNC), queryMessage('rollback'), queryMessage('deallocate all')]
    enqueue(socket, new Uint8Array(Buffer.concat(reset)))
    current = socket
    return socket
  }

  return {
    connect,
    /** Ends the connection once the message that runs is done, or at once with an error. */
    async close(error?: Error) {
      current?.destroy(error)
      if (error === undefined) await running
    },
  }
}

/** What the `postgres` client takes for a connected `net.Socket`. */
function createSocket(
  greeting: Uint8Array,
  onBatch: (bytes: Uint8Array<ArrayBuffer>) => void,
): Duplex {
  const split = createSplitter(() => socket.push(greeting), onBatch)
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      // Later, because an answer inside of write() confuses a client that is still in write().
      queueMicrotask(() => {
        if (!socket.destroyed) split(chunk)
        done()
      })
    },
    final: (done) => {
      socket.destroy()
      done()
    },
  })
  const self = () => socket
  Object.assign(socket, {
    setKeepAlive: self,
    setNoDelay: self,
    ref: self,
    unref: self,
  })
  Object.defineProperty(socket, 'readyState', {
    get: () => (socket.destroyed || socket.writableEnded ? 'closed' : 'open'),
  })
  return socket
}

/**
 * Cuts a client's bytes into batches, whatever pieces they come in: the start-up message, whose
 * parameters have no meaning here, and then all messages up to one that asks for an answer.
 */
function createSplitter(
  onStartup: () => void,
  onBatch: (bytes: Uint8Array<ArrayBuffer>) => void,
): (chunk: Buffer) => void {
  let pending: Buffer = Buffer.alloc(0)
  /** The start-up message has no type before its length. */
  let typeBytes = 0
  return (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    let cut = 0
    for (let at = 0; at + typeBytes + 4 <= pending.length;) {
      const end = at + typeBytes + pending.readUInt32BE(at + typeBytes)
      if (end > pending.length) break
      if (typeBytes === 0) {
        typeBytes = 1
        cut = end
        onStartup()
      } else if (ENDS.has(pending[at] ?? 0)) {
        // A copy: its memory may move to the engine's thread.
        onBatch(new Uint8Array(pending.subarray(cut, end)))
        cut = end
      }
      at = end
    }
    pending = pending.subarray(cut)
  }
}

function message(type: number, text = ''): Buffer {
  const body = Buffer.from(text)
  const head = Buffer.alloc(5)
  head[0] = type
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/**
 * What moves to the other thread with a message: to copy a short one costs less than to move it.
 */
export function moved(bytes: Uint8Array<ArrayBuffer>): ArrayBuffer[] {
  return bytes.length < 64 * 1024 ? [] : [bytes.buffer]
}

/** A simple query. */
export function queryMessage(text: string): Buffer {
  return message(QUERY, `${text}\0`)
}

/** The packet that opens the session. */
export function startupPacket(): Uint8Array {
  const parameters = Buffer.from('user\0postgres\0database\0postgres\0client_encoding\0UTF8\0\0')
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + parameters.length, 0)
  head.writeUInt32BE(PROTOCOL_3, 4)
  return Buffer.concat([head, parameters])
}

/** Whether an answer ends with ReadyForQuery outside of a transaction. */
export function endsIdle(answer: Uint8Array): boolean {
  return Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength)
    .subarray(-6)
    .equals(READY_IDLE)
}

const READY_IDLE = Buffer.from('Z\0\0\0\x05I')
