import fs from 'node:fs'
import path from 'node:path'
import { createZstdDecompress, zstdCompressSync } from 'node:zlib'

/** A directory (`size` is null) or a file of a packed tree; paths have forward slashes. */
interface Entry {
  path: string
  size: number | null
}

/**
 * Packs a directory into one piece: the list of its entries as a line of JSON, then the bytes of its
 * files in that order, compressed. The same tree always gives the same bytes.
 */
export function packTree(directory: string): Buffer {
  const entries: Entry[] = []
  const contents: Buffer[] = []
  const visit = (folder: string): void => {
    const names = fs.readdirSync(path.join(directory, folder), { withFileTypes: true })
    for (const entry of names.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = path.posix.join(folder, entry.name)
      if (entry.isDirectory()) {
        entries.push({ path: name, size: null })
        visit(name)
      } else {
        const bytes = fs.readFileSync(path.join(directory, name))
        entries.push({ path: name, size: bytes.length })
        contents.push(bytes)
      }
    }
  }
  visit('')
  const list = Buffer.from(`${JSON.stringify(entries)}\n`)
  return Buffer.concat([list, zstdCompressSync(Buffer.concat(contents))])
}

/** Makes a packed tree again in an empty directory, for its owner's eyes only. */
export async function unpackTree(packed: Buffer, directory: string): Promise<void> {
  const lineEnd = packed.indexOf('\n')
  const entries = JSON.parse(packed.toString('utf8', 0, lineEnd)) as readonly Entry[]
  // In pieces: the whole of it would stay in memory until some later garbage collection.
  const contents = createZstdDecompress({ chunkSize: 1 << 20 })
  contents.end(packed.subarray(lineEnd + 1))
  const pieces = contents[Symbol.asyncIterator]()
  let piece = Buffer.alloc(0)
  for (const { path: name, size } of entries) {
    const target = path.join(directory, name)
    if (size === null) {
      fs.mkdirSync(target, { mode: 0o700 })
      continue
    }
    const fd = fs.openSync(target, 'wx', 0o600)
    try {
      for (let left = size; left > 0;) {
        if (piece.length === 0) piece = await nextPiece(pieces)
        const written = fs.writeSync(fd, piece, 0, Math.min(left, piece.length))
        piece = piece.subarray(written)
        left -= written
      }
    } finally {
      fs.closeSync(fd)
    }
  }
}

async function nextPiece(pieces: AsyncIterator<Buffer<ArrayBuffer>>): Promise<Buffer<ArrayBuffer>> {
  const { value, done } = await pieces.next()
  if (done === true) throw new Error('the template of the embedded database ends too early')
  return value
}
