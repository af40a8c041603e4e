/** PostgreSQL's message types that matter here (protocol 3.0, section "Message Formats"). */
export const Type = {
  bind: 0x42,
  close: 0x43,
  flush: 0x48,
  functionCall: 0x46,
  parse: 0x50,
  query: 0x51,
  sync: 0x53,
  terminate: 0x58,
  notification: 0x41,
  ready: 0x5a,
} as const

const PROTOCOL_3 = 3 << 16
const CANCEL = 80877102
const SSL = 80877103
const GSS = 80877104
const MAX_MESSAGE = 2 ** 30

const ENDS = new Set<number>([Type.sync, Type.query, Type.flush, Type.functionCall])

/** Whole messages up to one that asks for an answer, in memory of their own (transferable). */
export interface Batch {
  bytes: Uint8Array<ArrayBuffer>
  /** Type of the last message: Sync, Query, Flush or FunctionCall. */
  end: number
}

/** What a client's bytes mean. */
export interface SplitterEvents {
  startup: () => void
  /** The client offers TLS or GSS encryption and waits for one byte. */
  encryption: () => void
  cancel: () => void
  batch: (batch: Batch) => void
  terminate: () => void
  malformed: () => void
}

/**
 * Cuts a client's byte stream into batches, whatever pieces it arrives in. Each byte is copied
 * once, into its batch.
 */
export function createSplitter(events: SplitterEvents): (chunk: Buffer) => void {
  const head = Buffer.alloc(8)
  let headFilled = 0
  let headSize = 8 // a startup message has no type byte: length and code
  let bodyLeft = 0
  let parts: Buffer[] = []

  const finishStartup = (): void => {
    const code = head.readUInt32BE(4)
    if (code === SSL || code === GSS) events.encryption()
    else if (code === CANCEL) events.cancel()
    else if (code >>> 16 === PROTOCOL_3 >>> 16) {
      headSize = 5
      events.startup()
    } else events.malformed()
  }

  return (chunk) => {
    let from = 0
    let at = 0
    for (;;) {
      if (headFilled < headSize) {
        const taken = chunk.copy(head, headFilled, at, at + headSize - headFilled)
        headFilled += taken
        at += taken
        if (headFilled < headSize) break
        // The length counts itself but not the type byte.
        bodyLeft = headSize === 8 ? head.readUInt32BE(0) - 8 : head.readUInt32BE(1) - 4
        if (bodyLeft < 0 || bodyLeft > MAX_MESSAGE) return events.malformed()
      }
      const taken = Math.min(bodyLeft, chunk.length - at)
      bodyLeft -= taken
      at += taken
      if (bodyLeft > 0) break
      headFilled = 0
      if (headSize === 8) {
        finishStartup()
        parts = []
        from = at
      } else if (head[0] === Type.terminate) {
        return events.terminate()
      } else if (ENDS.has(head[0] ?? 0)) {
        parts.push(chunk.subarray(from, at))
        events.batch({ bytes: join(parts), end: head[0] ?? 0 })
        parts = []
        from = at
      }
    }
    if (from < chunk.length) parts.push(chunk.subarray(from))
  }
}

/** One buffer of several, in memory that nothing else shares. */
export function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** Calls `visit` for each typed message with its bounds, type byte included. */
export function eachMessage(
  bytes: Buffer,
  visit: (type: number, start: number, end: number) => void,
): void {
  for (let at = 0; at + 5 <= bytes.length;) {
    const end = at + 1 + bytes.readUInt32BE(at + 1)
    visit(bytes[at] ?? 0, at, end)
    at = end
  }
}

/** The zero-terminated string at `start` and where the next field begins. */
export function readString(bytes: Buffer, start: number): { text: string; next: number } {
  const end = bytes.indexOf(0, start)
  return { text: bytes.toString('utf8', start, end), next: end + 1 }
}

/** A message of the given type around a body. */
export function message(type: number, ...body: (string | Uint8Array)[]): Buffer {
  const content = Buffer.concat(body.map((part) => Buffer.from(part)))
  const head = Buffer.alloc(5)
  head[0] = type
  head.writeUInt32BE(content.length + 4, 1)
  return Buffer.concat([head, content])
}

/** A simple query. */
export function queryMessage(text: string): Buffer {
  return message(Type.query, text, '\0')
}

/** The server's error message; the severity is ERROR. */
export function errorResponse(sqlstate: string, text: string): Buffer {
  return message(0x45, `SERROR\0VERROR\0C${sqlstate}\0M${text}\0\0`)
}

/** The server's ReadyForQuery outside of a transaction. */
export function readyIdle(): Buffer {
  return message(Type.ready, 'I')
}

/** The packet that opens the engine's one session. */
export function startupPacket(): Uint8Array<ArrayBuffer> {
  const content = Buffer.from('user\0postgres\0database\0postgres\0client_encoding\0UTF8\0\0')
  const packet = Buffer.alloc(8)
  packet.writeUInt32BE(8 + content.length, 0)
  packet.writeUInt32BE(PROTOCOL_3, 4)
  return join([packet, content])
}
