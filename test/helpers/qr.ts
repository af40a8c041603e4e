import { inflateSync } from 'node:zlib'
import jsqr from 'jsqr'

/** A picture as four bytes a pixel. */
type Picture = Readonly<{ width: number; height: number; pixels: Uint8ClampedArray }>

/** The text of the QR code in a picture, read by a decoder that is not ours. */
export function decodeQr({ pixels, width, height }: Picture): string | undefined {
  return jsqr.default(pixels, width, height)?.data
}

/** The pixels of a PNG, by the part of its format that we write: grey, one bit a pixel, no filter. */
export function pixelsOf(png: Buffer) {
  const [width = 0, height = 0, size = 0] = [16, 20, 33].map((at) => png.readUInt32BE(at))
  const format = png.subarray(24, 29).toString('hex')
  if (format !== '0100000000') throw new Error(`a PNG of another format: ${format}`)
  const lines = inflateSync(png.subarray(41, 41 + size))
  const pitch = 1 + Math.ceil(width / 8)
  return toPicture(width, height, (x, y) => {
    const byte = lines[y * pitch + 1 + (x >> 3)] ?? 0
    return ((byte >> (7 - (x & 7))) & 1) === 0
  })
}

/** The pixels of a code in block characters, each of which stands for two modules. */
export function pixelsOfText(text: string, scale = 4) {
  const lines = text.split('\n').map((line) => [...line])
  const width = lines[0]?.length ?? 0
  const light = ['█▀', '█▄']
  const isDark = (x: number, y: number) => {
    const half = Math.floor(y / scale)
    const character = lines[half >> 1]?.[Math.floor(x / scale)] ?? ' '
    return !(light[half & 1] ?? '').includes(character)
  }
  return toPicture(width * scale, lines.length * 2 * scale, isDark)
}

function toPicture(width: number, height: number, isDark: (x: number, y: number) => boolean) {
  const pixels = new Uint8ClampedArray(width * height * 4).fill(255)
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (isDark(x, y)) pixels.fill(0, (y * width + x) * 4, (y * width + x) * 4 + 3)
    }
  }
  return { width, height, pixels }
}
