// PGlite is compiled for memory that one thread has for itself. Here another thread writes to it as
// well (interrupts.ts), so its code is changed before it is compiled: the import of the memory says
// whether it is shared. Nothing else in the code depends on that.

// TypeScript describes WebAssembly only together with the whole DOM.
declare const WebAssembly: {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => WasmMemory
}

/** Memory of WebAssembly that threads share. */
export interface WasmMemory {
  buffer: SharedArrayBuffer
}

/** In pages of 64 KiB, as in PGlite's code. */
const LIMITS = { initial: 2_048, maximum: 32_768 }

const HEADER_BYTES = 8
const IMPORTS = 2
/** How the import of the memory begins: module, name, and that it is memory. */
const MEMORY = Buffer.from('\x03env\x06memory\x02', 'latin1')
/** What follows it: which limits it has. */
const WITH_MAXIMUM = 1
const SHARED = 3

/**
 * WebAssembly code that imports memory, changed so that it takes shared memory: the engine's own
 * code, or that of a library which it loads.
 */
export function withSharedMemory(code: Uint8Array): Buffer {
  const bytes = Buffer.from(code.buffer, code.byteOffset, code.length)
  // Sections one after the other: a kind, a size, the content.
  for (let at = HEADER_BYTES; at < bytes.length;) {
    const size = readNumber(bytes, at + 1)
    const content = bytes.subarray(size.end, size.end + size.value)
    const next = size.end + size.value
    if (bytes[at] === IMPORTS && content.includes(MEMORY)) {
      const shared = importShared(content)
      const head = Buffer.concat([Buffer.of(IMPORTS), numberBytes(shared.length)])
      return Buffer.concat([bytes.subarray(0, at), head, shared, bytes.subarray(next)])
    }
    at = next
  }
  throw new Error('the code of the embedded database does not import its memory')
}

/** The imports, with that of the memory changed. Shared memory must have a maximum. */
function importShared(imports: Buffer): Buffer {
  const at = imports.indexOf(MEMORY) + MEMORY.length
  const minimum = readNumber(imports, at + 1)
  const maximum = imports[at] === WITH_MAXIMUM ? [] : [numberBytes(LIMITS.maximum)]
  const limits = [Buffer.of(SHARED), imports.subarray(at + 1, minimum.end), ...maximum]
  return Buffer.concat([imports.subarray(0, at), ...limits, imports.subarray(minimum.end)])
}

/** A number as WebAssembly writes it (LEB128), and where it ends. */
function readNumber(bytes: Uint8Array, at: number) {
  let value = 0
  let end = at
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[end++] ?? 0
    value += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) return { value, end }
  }
}

function numberBytes(value: number): Buffer {
  const bytes: number[] = []
  let left = value
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left & 0x7f) | 0x80)
  return Buffer.from([...bytes, left])
}

export function createSharedMemory(): WasmMemory {
  return new WebAssembly.Memory({ ...LIMITS, shared: true })
}
