import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress } from 'node:zlib'
import * as Type from '../../kernel/schema.ts'
import type { Static } from '../../kernel/schema.ts'
import { fits } from '../../kernel/validate.ts'
import { Applied } from '../migrate.ts'
import { nullable } from '../sql-file.ts'
import { syncPath } from '../disk.ts'

/**
 * Size of the part before the rows: two lines, padded with spaces. It is written after the rows.
 */
export const HEAD = 64 * 1024
const FORMAT = 'gatehouse backup 1'

const Contents = Type.Object({
  /** The program's. */
  version: Type.String(),
  made_at: Type.String({ format: 'date-time' }),
  migrations: Type.Array(Applied),
  /** In the order of their rows. */
  tables: Type.Array(
    Type.Object({
      name: Type.String(),
      rows: Type.Integer({ minimum: 0 }),
      sha256: Type.String(),
      next_id: nullable(Type.Integer({ minimum: 1 })),
    }),
  ),
})

/** What a backup contains. */
export type Contents = Static<typeof Contents>

const Header = Type.Object({
  ...Contents.properties,
  /** Size and checksum of the compressed rows. */
  bytes: Type.Integer({ minimum: 0 }),
  sha256: Type.String(),
})
type Header = Static<typeof Header>

/**
 * Writes a backup. Its first line has the format and a checksum of the second one, which is the
 * table of contents in JSON. All rows follow, one a line, compressed by zstd. The file gets its
 * name when all of it is on the disk. `contents` is called after the last row.
 *
 * @returns its size in bytes.
 */
export async function writeBackup(
  path: string,
  rows: AsyncIterable<readonly string[]>,
  contents: () => Contents,
): Promise<number> {
  const part = `${path}.part`
  // A new file: somebody else may have an old one open.
  await rm(part, { force: true })
  await using file = await open(part, 'wx', 0o600)
  try {
    const body = await writeBody(file, rows)
    await writeAt(file, headOf({ ...contents(), ...body }), 0)
    await file.sync()
    if (!(await isAt(file, part))) {
      throw new Error(`another backup to ${path} has begun meanwhile: this one is given up`)
    }
    await rename(part, path)
    syncPath(dirname(path))
    return HEAD + body.bytes
  } catch (error) {
    if (await isAt(file, part)) await rm(part, { force: true })
    throw error
  }
}

/** Whether a path is still that of an open file, and not of another one. */
async function isAt(file: FileHandle, path: string) {
  const [own, there] = await Promise.all([file.stat(), stat(path).catch(() => undefined)])
  return own.ino === there?.ino && own.dev === there.dev
}

/** Checks every byte of a backup and reads its contents; throws an Error with one line. */
export async function verifyBackup(path: string): Promise<Header> {
  const header = await readHeader(path)
  const sum = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path, { start: HEAD }) as AsyncIterable<Buffer>) {
    sum.update(chunk)
    bytes += chunk.length
  }
  if (bytes < header.bytes) throw broken(path, `it ends too early, at ${HEAD + bytes} bytes`)
  if (bytes > header.bytes || sum.digest('hex') !== header.sha256) {
    throw broken(path, 'its rows have changed since it was made')
  }
  return header
}

async function writeBody(
  file: FileHandle,
  rows: AsyncIterable<readonly string[]>,
): Promise<Pick<Header, 'bytes' | 'sha256'>> {
  const sum = createHash('sha256')
  let bytes = 0
  async function* lines(): AsyncGenerator<Buffer> {
    for await (const batch of rows) yield Buffer.from(`${batch.join('\n')}\n`)
  }
  await pipeline(lines, createZstdCompress(), async (compressed: AsyncIterable<Buffer>) => {
    for await (const chunk of compressed) {
      sum.update(chunk)
      await writeAt(file, chunk, HEAD + bytes)
      bytes += chunk.length
    }
  })
  return { bytes, sha256: sum.digest('hex') }
}

/** Writes all bytes. A disk that is nearly full takes a part, and fails only at the next write. */
async function writeAt(file: FileHandle, bytes: Buffer, position: number) {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, undefined, position + done)
    done += bytesWritten
  }
}

function headOf(header: Header) {
  const first = (rest: string) => `${FORMAT} ${hash('sha256', rest)}\n`
  const space = HEAD - first('').length
  const line = JSON.stringify(header)
  const rest = `${line.padEnd(space - 1)}\n`
  if (Buffer.byteLength(rest) > space) {
    throw new Error('what the backup says of itself is too long')
  }
  return Buffer.from(first(rest) + rest)
}

async function readHeader(path: string): Promise<Header> {
  await using file = await open(path)
  const head = Buffer.alloc(HEAD)
  const { bytesRead } = await file.read(head, 0, HEAD, 0)
  const end = head.indexOf('\n') + 1
  const first = head.toString('utf8', 0, end).trimEnd()
  const sum = first.slice(FORMAT.length + 1)
  if (!first.startsWith('gatehouse backup ')) throw new Error(`${path} is no backup of Gatehouse`)
  if (!first.startsWith(`${FORMAT} `)) {
    throw new Error(
      `${path} has a format that this program does not know: it is newer; ` +
        'restore it with the program that made it',
    )
  }
  if (bytesRead < HEAD) throw broken(path, `it ends too early, at ${bytesRead} bytes`)
  if (hash('sha256', head.subarray(end)) !== sum) {
    throw broken(path, 'its first lines have changed since it was made')
  }
  const header: unknown = JSON.parse(head.toString('utf8', end))
  if (!fits(Header, header)) throw broken(path, 'its first lines do not say what is in it')
  return header
}

function broken(path: string, why: string): Error {
  return new Error(`the backup ${path} is damaged: ${why}; nothing was changed`)
}
