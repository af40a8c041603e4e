import { readFile, stat, statfs } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import type { Static } from 'typebox'
import type { DiskCheck, FileAgeCheck, LoadCheck, MemoryCheck } from '../inventory/schema.ts'
import { homeNote } from '../hardening.ts'
import type { Finding } from './finding.ts'

const DISK_PERCENT = 90
const MEMORY_PERCENT = 95
const LOAD_PER_CPU = 4

/** A file system has room, in bytes and in inodes. */
export async function diskCheck({
  path,
  max_percent = DISK_PERCENT,
}: Static<typeof DiskCheck>): Promise<Finding> {
  const note = await homeNote(path)
  if (note !== undefined) return { ok: false, message: note }
  const { blocks, bfree, bavail, files, ffree } = await statfs(path)
  // As df has it: what is reserved for root counts as neither used nor free.
  const used = blocks - bfree
  const bytes = percent(used, used + bavail)
  const inodes = files === 0 ? 0 : percent(files - ffree, files)
  const most = Math.max(bytes, inodes)
  const what = inodes > bytes ? 'of the inodes' : 'of the space'
  return judge(most, max_percent, `${most} % ${what} used`)
}

/** Memory that programs can still get. */
export async function memoryCheck({
  max_percent = MEMORY_PERCENT,
}: Static<typeof MemoryCheck>): Promise<Finding> {
  const text = await readFile('/proc/meminfo', 'utf8')
  const total = kilobytes(text, 'MemTotal')
  const used = percent(total - kilobytes(text, 'MemAvailable'), total)
  return judge(used, max_percent, `${used} % of the memory used`)
}

/** How many programs want to run, over five minutes. */
export async function loadCheck({
  max_per_cpu = LOAD_PER_CPU,
}: Static<typeof LoadCheck>): Promise<Finding> {
  const [, load = 0] = loadavg()
  // Of the machine, as the load is, and not those that this process may use; without /proc none is known.
  const processors = cpus().length || availableParallelism()
  const each = Math.round((load / processors) * 100) / 100
  const message = `load of ${each} for each processor`
  if (each <= max_per_cpu) return { ok: true, message }
  return { ok: false, message: `${message}, expected ${max_per_cpu} at most` }
}

/** A file was written lately, such as a backup. */
export async function fileAgeCheck({
  path,
  max_age_s,
  min_bytes = 0,
}: Static<typeof FileAgeCheck>): Promise<Finding> {
  const note = await homeNote(path)
  if (note !== undefined) return { ok: false, message: note }
  const file = await stat(path)
  const age = Math.max(0, Math.round((Date.now() - file.mtimeMs) / 1_000))
  const message = `written ${age} s ago`
  if (age > max_age_s) return { ok: false, message: `${message}, expected ${max_age_s} s at most` }
  // The size of a folder says nothing of what is in it.
  if (file.isFile() && file.size < min_bytes) {
    return { ok: false, message: `${file.size} bytes, expected ${min_bytes} or more; ${message}` }
  }
  return { ok: true, message }
}

function judge(value: number, most: number, message: string): Finding {
  if (value <= most) return { ok: true, message }
  return { ok: false, message: `${message}, expected ${most} % at most` }
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 10
}

function kilobytes(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
}
