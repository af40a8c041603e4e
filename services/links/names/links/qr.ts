import { crc32, deflateSync } from 'node:zlib'
import { encode, renderSVG, renderUnicodeCompact } from 'uqr'

/**
 * A code is read although 15 % of it is covered or dirty. Readers need four light modules around
 * it.
 */
const CODE = { ecc: 'M', border: 4 } as const

/** Pixels of a module in each direction. With eight, each row of a module is one byte. */
const MODULE = 8
const LIGHT = 0xff
const DARK = 0x00

/** The QR code of a text as an SVG, which has no size of its own. */
export function qrSvg(text: string): Buffer {
  return Buffer.from(renderSVG(text, CODE))
}

/** The QR code of a text in lines of block characters, for a terminal with a dark background. */
export function qrText(text: string): string {
  return renderUnicodeCompact(text, CODE)
}

/**
 * The QR code of a text as a PNG: grey with one bit a pixel. A text of 2,331 bytes, the longest that
 * a code holds, gives 1,480 pixels each way.
 */
export function qrPng(text: string): Buffer {
  const { data, size } = encode(text, CODE)
  const lines = data.flatMap((modules) => {
    // The byte before each line says that the line stands as it is, without a filter.
    const line = [0, ...modules.map((isDark) => (isDark ? DARK : LIGHT))]
    return Array.from({ length: MODULE }, () => line).flat()
  })
  const header = Buffer.alloc(13)
  header.writeUInt32BE(size * MODULE, 0)
  header.writeUInt32BE(size * MODULE, 4)
  // One bit a pixel; the zeros after it: grey, deflate, filters by line, not interlaced.
  header.writeUInt8(1, 8)
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(Buffer.from(lines))),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** A part of a PNG file: its length, its type, its bytes, and a checksum of the last two. */
function pngChunk(type: string, bytes: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type), bytes])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(bytes.length)
  sum.writeUInt32BE(crc32(content))
  return Buffer.concat([length, content, sum])
}
