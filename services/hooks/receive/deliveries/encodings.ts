import { promisify } from 'node:util'
import {
  brotliDecompress,
  gunzip,
  inflate,
  inflateRaw,
  zstdDecompress,
  type ZlibOptions,
} from 'node:zlib'

// What a header Content-Encoding names. zlib works beside the main thread, and ends as soon as
// more comes out than may.

/** A body without its encodings, or why it keeps them. */
type Decoded =
  | { bytes: Buffer; problem: undefined }
  | { bytes: undefined; problem: 'damaged' | 'oversized' | 'unsupported' }

/** What may come out of a body: in bytes, and in times its size. */
const MAX_DECODED = 25 * 1024 * 1024
const MAX_RATIO = 100
/** Encodings within each other. */
const MAX_LAYERS = 3
/** Each piece that comes out is a task of its own; zlib's have 16 KiB. */
const CHUNK = 64 * 1024

/** Bounds of a decoder; zlib's names. */
type Bounds = Readonly<Pick<ZlibOptions, 'maxOutputLength' | 'chunkSize'>>
type Decoder = (bytes: Buffer, bounds: Bounds) => Promise<Buffer>

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', decodeDeflate],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
])

/** RFC 9110 means zlib's format; some senders leave out its head of two bytes. */
function decodeDeflate(bytes: Buffer, bounds: Bounds): Promise<Buffer> {
  const head = bytes.length < 2 ? 0 : bytes.readUInt16BE()
  const hasHead = (head & 0x0f00) === 0x0800 && head % 31 === 0
  return promisify(hasHead ? inflate : inflateRaw)(bytes, bounds)
}

/** The encodings that a header names, the innermost first. */
export function encodingsIn(header = ''): readonly string[] {
  const names = header.split(',').map((name) => name.trim().toLowerCase())
  return names.filter((name) => name !== '' && name !== 'identity')
}

/** Takes the encodings off a body, the last one first. */
export async function decode(body: Buffer, encodings: readonly string[]): Promise<Decoded> {
  const decoders = encodings.map((name) => DECODERS.get(name))
  if (decoders.length > MAX_LAYERS || decoders.includes(undefined)) return because('unsupported')
  const maxOutputLength = Math.min(MAX_DECODED, MAX_RATIO * body.length)
  let bytes = body
  try {
    for (const decoder of decoders.toReversed()) {
      bytes = (await decoder?.(bytes, { maxOutputLength, chunkSize: CHUNK })) ?? bytes
    }
    return { bytes, problem: undefined }
  } catch (error) {
    const isLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    return because(isLarge ? 'oversized' : 'damaged')
  }
}

function because(problem: NonNullable<Decoded['problem']>): Decoded {
  return { bytes: undefined, problem }
}
