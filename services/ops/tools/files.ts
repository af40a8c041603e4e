import { mkdir, open, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { constants } from 'node:fs'
import { isAbsolute, join, resolve, sep } from 'node:path'
import Type from 'typebox'
import { codeOf } from '../../../kernel/log.ts'
import { defineTool, done, refused, type ToolContext, type ToolResult } from './tool.ts'

/** Of a larger file only the end is read. */
const FILE_BYTES = 4 * 1024 * 1024
const ENTRIES = 500
const Path = Type.String({
  minLength: 1,
  maxLength: 4_000,
  description: 'Absolute, or within the folder of repositories',
})

export const readFileTool = defineTool({
  name: 'read_file',
  description: 'Reads lines of a text file in the repositories or in a folder that is listed.',
  tier: 2,
  takes: {
    path: Path,
    from_line: Type.Optional(Type.Integer({ minimum: 1, default: 1 })),
    lines: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 200 })),
  },
  async run({ path, from_line = 1, lines: most = 200 }, context) {
    return within(path, context, async (real, roots) => {
      const read = await readEnd(real, roots)
      if (read === undefined) return refused(OUTSIDE)
      if ('problem' in read) return refused(read.problem)
      // All of it: a secret must not be read in halves.
      const all = context.redact(read.text).split('\n')
      const shown = all.slice(from_line - 1, from_line - 1 + most)
      const cut = read.cut ? `; only the last ${FILE_BYTES} bytes of it` : ''
      const head = `${path}, lines ${from_line} to ${from_line - 1 + shown.length} of ${all.length}${cut}`
      return done(`${head}:\n${shown.join('\n')}`)
    })
  },
})

export const listFilesTool = defineTool({
  name: 'list_files',
  description: 'Lists a folder in the repositories or among those that are listed.',
  tier: 2,
  takes: { path: Type.Optional(Path) },
  async run({ path = '.' }, context) {
    return within(path, context, async (real) => {
      const entries = await readdir(real, { withFileTypes: true })
      const shown = entries
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .slice(0, ENTRIES)
        .map((entry) => {
          if (entry.isDirectory()) return `${entry.name}/`
          return entry.isSymbolicLink() ? `${entry.name} (link)` : entry.name
        })
      const more = entries.length > ENTRIES ? [`and ${entries.length - ENTRIES} more`] : []
      return done([...shown, ...more].join('\n') || 'The folder is empty.')
    })
  },
})

const OUTSIDE = 'That is outside of the folders that may be read.'

/** Gives the real path of something within the roots; whatever links lead out of them is refused. */
async function within(
  path: string,
  { inventory, job }: ToolContext,
  work: (real: string, roots: readonly string[]) => Promise<ToolResult>,
): Promise<ToolResult> {
  const { repos_dir } = job.config
  await mkdir(repos_dir, { recursive: true })
  const listed = [repos_dir, ...((await inventory.current()).roots ?? [])]
  const named = isAbsolute(path) ? resolve(path) : join(resolve(repos_dir), path)
  // Before the disk is asked: what is not there must not differ from what is, outside.
  if (
    !isWithin(
      named,
      listed.map((root) => resolve(root)),
    )
  )
    return refused(OUTSIDE)
  try {
    const roots = await realRoots(listed)
    const real = await realpath(named)
    return isWithin(real, roots) ? await work(real, roots) : refused(OUTSIDE)
  } catch (error) {
    return refused(wordsOf(error))
  }
}

async function realRoots(listed: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.allSettled(listed.map((root) => realpath(root)))
  return found.flatMap((root) => (root.status === 'fulfilled' ? [root.value] : []))
}

/** The end of a file; undefined when what was opened is not within the roots after all. */
async function readEnd(
  real: string,
  roots: readonly string[],
): Promise<
  { readonly text: string; readonly cut: boolean } | { readonly problem: string } | undefined
> {
  // A pipe or a device must neither block nor be read.
  if (!(await stat(real)).isFile()) return { problem: 'That is no file.' }
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    // A folder on the way may have become a link since it was looked at: what is open now counts.
    if (!isWithin(await readlink(`/proc/self/fd/${file.fd}`), roots)) return undefined
    const { size } = await file.stat()
    const buffer = Buffer.alloc(Math.min(size, FILE_BYTES))
    const from = size - buffer.length
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
    const bytes = buffer.subarray(0, bytesRead)
    if (bytes.includes(0)) return { problem: 'That is no text file.' }
    // The first line of an end is half a line.
    const start = from === 0 ? 0 : bytes.indexOf(10) + 1
    return { text: bytes.toString('utf8', start), cut: from > 0 }
  } finally {
    await file.close()
  }
}

function isWithin(path: string, roots: readonly string[]): boolean {
  return roots.some(
    (root) => path === root || path.startsWith(root.endsWith(sep) ? root : root + sep),
  )
}

function wordsOf(error: unknown): string {
  const code = codeOf(error) ?? ''
  return WORDS[code] ?? `It can't be read (${code || 'unknown reason'}).`
}

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'There is no such file.',
  EACCES: 'It may not be read: permission denied.',
  ENOTDIR: 'That is no folder.',
  ELOOP: 'Links go round in a circle.',
}
