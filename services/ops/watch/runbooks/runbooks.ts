import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as Type from '../../../../kernel/schema.ts'
import { codeOf, messageOf, type Log } from '../../../../kernel/log.ts'
import { readFrontMatter } from './front-matter.ts'

// What operators wrote for a kind of trouble, in the form of an agent skill (agentskills.io):
// NAME/SKILL.md or NAME.md. Nothing in the folder is ever executed.

/** A runbook, as sessions read it. */
export interface Runbook {
  name: string
  /** What it is for, in one line. */
  description: string
  text: string
  file: string
}

/** A file that is left out, and why, to be read after its name. */
export interface RunbookProblem {
  file: string
  problem: string
}

/** The runbooks of the folder that `OPS_RUNBOOKS` names, read again each time. */
export interface RunbookSource {
  current(): Promise<readonly Runbook[]>
}

/** A folder of something else may have any number. */
const MAX_FILES = 100
const MAX_BYTES = 64 * 1024
const MAX_DESCRIPTION = 1_024
/** What a repository of runbooks has besides. */
const NO_RUNBOOK = 'README.md'
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** The name of a runbook, as the inventory and calls have it. */
export const RunbookName = Type.String({
  maxLength: 64,
  pattern: NAME.source,
  description: 'Lower-case letters, digits and single dashes',
})

/** Follows the folder. Each file that is left out is logged once, until that changes. */
export function openRunbooks(folder: () => string | undefined, log: Log): RunbookSource {
  let known = new Set<string>()
  return {
    async current() {
      const place = folder()
      if (place === undefined) return []
      const { runbooks, problems } = await readRunbooks(place)
      const present = new Set(problems.map((one) => JSON.stringify(one)))
      for (const one of problems) {
        if (known.has(JSON.stringify(one))) continue
        log.warn('runbook left out', { file: one.file, problem: one.problem })
      }
      known = present
      return runbooks
    },
  }
}

/** Reads all runbooks of a folder, by name. Never rejects: what can't be read is a problem. */
export async function readRunbooks(folder: string) {
  const problems: RunbookProblem[] = []
  const runbooks = new Map<string, Runbook>()
  const files = await listFiles(folder, problems)
  const [beyond] = files.slice(MAX_FILES)
  if (beyond !== undefined) {
    const more = files.length - MAX_FILES - 1
    const problem = `it and ${more} more come after the first ${MAX_FILES}`
    problems.push({ file: beyond.file, problem })
  }
  for (const { name, file } of files.slice(0, MAX_FILES)) {
    try {
      const runbook = await readRunbook(name, file)
      if (runbook === undefined) continue
      const other = runbooks.get(name)
      if (other !== undefined) throw new SyntaxError(`${other.file} has the same name`)
      runbooks.set(name, runbook)
    } catch (error) {
      problems.push({ file, problem: messageOf(error) })
    }
  }
  return { runbooks: [...runbooks.values()], problems }
}

/** The files that may be runbooks, in the order of their names. */
async function listFiles(folder: string, problems: RunbookProblem[]) {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    problems.push({ file: folder, problem: `it can't be read: ${messageOf(error)}` })
    return []
  })
  return entries
    .filter(({ name }) => !name.startsWith('.') && name !== NO_RUNBOOK)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const isText = entry.name.endsWith('.md')
      if (isText) return [{ name: entry.name.slice(0, -3), file: join(folder, entry.name) }]
      if (entry.isFile()) return []
      return [{ name: entry.name, file: join(folder, entry.name, 'SKILL.md') }]
    })
}

/** Undefined where the file is missing: the folder may be for something else. */
async function readRunbook(name: string, file: string): Promise<Runbook | undefined> {
  const text = await readSmallFile(file)
  if (text === undefined) return undefined
  const { members, body } = readFrontMatter(text, ['name', 'description'])
  const description = (members.get('description') ?? '').replaceAll(/\s+/g, ' ').trim()
  if (!NAME.test(name) || name.length > 64) {
    throw new SyntaxError('its name must be lower-case letters, digits and single dashes')
  }
  if (members.get('name') !== name) throw new SyntaxError(`its name must be "${name}"`)
  if (description === '' || description.length > MAX_DESCRIPTION) {
    throw new SyntaxError(`its description must have 1 to ${MAX_DESCRIPTION} characters`)
  }
  return { name, description, text: body, file }
}

/** Undefined where the file is missing. */
async function readSmallFile(path: string): Promise<string | undefined> {
  // A pipe must not block.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
      throw error
    },
  )
  if (file === undefined) return undefined
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new SyntaxError('it is no file')
    const buffer = Buffer.alloc(MAX_BYTES + 1)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    if (bytesRead > MAX_BYTES) throw new SyntaxError(`it is over ${MAX_BYTES / 1024} KiB`)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Where the inventory names a runbook. */
interface Naming {
  /** Such as `service "shop"`. */
  where: string
  runbook: string
}

/** What names runbooks: services, and their checks. */
interface NamesRunbooks {
  name: string
  runbook?: string
  checks: readonly { runbook?: string }[]
}

/** The runbooks that are named and not there. */
export function missingRunbooks(
  services: readonly NamesRunbooks[],
  runbooks: readonly Pick<Runbook, 'name'>[],
): readonly Naming[] {
  const known = new Set(runbooks.map(({ name }) => name))
  return services.flatMap(({ name, runbook, checks }) => {
    const named = [runbook, ...checks.map((check) => check.runbook)]
    const missing = new Set(named.filter((one) => one !== undefined && !known.has(one)))
    return [...missing].map((one) => ({ where: `service "${name}"`, runbook: one ?? '' }))
  })
}
