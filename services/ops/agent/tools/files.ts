import { mkdir, open, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { constants } from 'node:fs'
import { resolve, sep } from 'node:path'
import * as Type from '../../../../kernel/schema.ts'
import { badRequest, Fault } from '../../../../kernel/fault.ts'
import { codeOf } from '../../../../kernel/log.ts'
import { Contains, linesReply } from './lines.ts'
import { defineTool, done, type ToolContext } from './tool.ts'

/** Of a larger file only the end is read. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
const MAX_ENTRIES = 500
const Path = Type.String({
  minLength: 1,
  maxLength: 4_000,
  description: 'Absolute, or within the folder of repositories',
})

export const readFileTool = defineTool({
  name: 'read_file',
  description: 'Reads lines of a text file in the repositories or in a folder that is listed.',
  tier: 2,
  effect: 'reads',
  takes: {
    path: Path,
    from_line: Type.Optional(Type.Integer({ minimum: 1, default: 1 })),
    lines: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 200 })),
    contains: Contains,
  },
  async run({ path, from_line = 1, lines: most = 200, contains }, context) {
    const { text, isCut } = await inRoots(path, context, readEnd)
    // Redact the whole text: a secret may span the lines that are shown.
    const all = context.redact(text).split('\n')
    const start = from_line - 1
    if (contains !== undefined) {
      return linesReply({ lines: all.slice(start), contains, most, isCut, from: from_line })
    }
    const shown = all.slice(start, start + most)
    const cut = isCut ? `; only the last ${MAX_FILE_BYTES} bytes of it` : ''
    const last = start + shown.length
    const head = `${path}, lines ${from_line} to ${last} of ${all.length}${cut}`
    return done(`${head}:\n${shown.join('\n')}`)
  },
})

export const listFilesTool = defineTool({
  name: 'list_files',
  description: 'Lists a folder in the repositories or among those that are listed.',
  tier: 2,
  effect: 'reads',
  takes: { path: Type.Optional(Path) },
  async run({ path = '.' }, context) {
    const entries = await inRoots(path, context, (real) => readdir(real, { withFileTypes: true }))
    const shown = entries
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .slice(0, MAX_ENTRIES)
      .map((entry) => {
        if (entry.isDirectory()) return `${entry.name}/`
        return entry.isSymbolicLink() ? `${entry.name} (link)` : entry.name
      })
    const more = entries.length - MAX_ENTRIES
    if (more > 0) shown.push(`and ${more} more`)
    return done(shown.join('\n') || 'The folder is empty.')
  },
})

/**
 * Reads something within the roots, by its real path. Links that lead out of them are refused.
 * Rejects with a Fault that says why it can't be read.
 */
async function inRoots<T>(
  path: string,
  { inventory, job: { config } }: ToolContext,
  read: (real: string, roots: readonly string[]) => Promise<T>,
): Promise<T> {
  try {
    await mkdir(config.repos_dir, { recursive: true })
    const { roots: more = [] } = await inventory.current()
    const listed = [config.repos_dir, ...more].map((root) => resolve(root))
    // Before the disk is asked: outside, a missing file must look like one that exists.
    const wanted = resolve(config.repos_dir, path)
    refuseOutside(wanted, listed)
    const found = await Promise.allSettled(listed.map((root) => realpath(root)))
    const roots = found.flatMap((root) => (root.status === 'fulfilled' ? [root.value] : []))
    const real = await realpath(wanted)
    refuseOutside(real, roots)
    return await read(real, roots)
  } catch (error) {
    if (error instanceof Fault) throw error
    const code = codeOf(error) ?? ''
    throw badRequest(PROBLEMS[code] ?? `It can't be read (${code || 'unknown reason'}).`)
  }
}

/** The end of a text file, and whether its beginning is missing. */
async function readEnd(real: string, roots: readonly string[]) {
  // A pipe or a device must neither block nor be read.
  if (!(await stat(real)).isFile()) throw badRequest('That is no file.')
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    // A folder on the way may have become a link since: only what is open now counts.
    refuseOutside(await readlink(`/proc/self/fd/${file.fd}`), roots)
    const { size } = await file.stat()
    const buffer = Buffer.alloc(Math.min(size, MAX_FILE_BYTES))
    const from = size - buffer.length
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
    const bytes = buffer.subarray(0, bytesRead)
    if (bytes.includes(0)) throw badRequest('That is no text file.')
    // The first line of the end is incomplete.
    const start = from === 0 ? 0 : bytes.indexOf(10) + 1
    return { text: bytes.toString('utf8', start), isCut: from > 0 }
  } finally {
    await file.close()
  }
}

function refuseOutside(path: string, roots: readonly string[]): void {
  // Only the root of all has a separator at its end.
  const folders = roots.map((root) => (root.endsWith(sep) ? root : root + sep))
  const isWithin = folders.some((folder) => (path + sep).startsWith(folder))
  if (!isWithin) throw badRequest('That is outside of the folders that may be read.')
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'There is no such file.',
  EACCES: 'It may not be read: permission denied.',
  ENOTDIR: 'That is no folder.',
  ELOOP: 'Links go round in a circle.',
}
