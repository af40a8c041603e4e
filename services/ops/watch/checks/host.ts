import { readFile, stat, statfs } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import * as Type from '../../../../kernel/schema.ts'
import { homeNote } from './hardening.ts'
import { codeOf } from '../../../../kernel/log.ts'
import { defineCheck, failed, passed, Path, unknown, type Finding } from './check.ts'

const DEFAULT_DISK_PERCENT = 90
const DEFAULT_MEMORY_PERCENT = 95
const DEFAULT_LOAD = 4
/** Clocks of two machines may differ by this much. */
const MAX_AHEAD_S = 60

const Percent = Type.Number({ exclusiveMinimum: 0, maximum: 100 })

/** A file system has free space and inodes. */
export const diskCheck = defineCheck('disk', {
  takes: { path: Path, max_percent: Type.Optional(Percent) },
  level: 'warning',
  nameOf: ({ path }) => `disk ${path}`,
  async run({ path, max_percent = DEFAULT_DISK_PERCENT }) {
    const note = await homeNote(path)
    if (note !== undefined) return unknown(note)
    const { blocks, bfree, bavail, files, ffree } = await statfs(path)
    // As df does: blocks reserved for root count as neither used nor free.
    const used = blocks - bfree
    if (used + bavail === 0) {
      return unknown('its file system has no size; name a path on a disk in the inventory')
    }
    const bytes = percent(used, used + bavail)
    const inodes = files === 0 ? 0 : percent(files - ffree, files)
    const what = inodes > bytes ? 'of the inodes' : 'of the space'
    return usage(Math.max(bytes, inodes), max_percent, what)
  },
})

/** Memory is available to programs. */
export const memoryCheck = defineCheck('memory', {
  takes: { max_percent: Type.Optional(Percent) },
  level: 'warning',
  nameOf: () => 'memory',
  async run({ max_percent = DEFAULT_MEMORY_PERCENT }) {
    const text = await readFile('/proc/meminfo', 'utf8').catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return ''
      throw error
    })
    const total = kilobytes(text, 'MemTotal')
    const available = kilobytes(text, 'MemAvailable')
    if (total === undefined || available === undefined) {
      return unknown('/proc/meminfo does not say it; leave this check out of the inventory')
    }
    return usage(percent(total - available, total), max_percent, 'of the memory')
  },
})

/** The load over five minutes, for each processor. */
export const loadCheck = defineCheck('load', {
  takes: { max_per_cpu: Type.Optional(Type.Number({ exclusiveMinimum: 0 })) },
  level: 'warning',
  nameOf: () => 'load',
  async run({ max_per_cpu = DEFAULT_LOAD }) {
    const [, load = 0] = loadavg()
    // The load is that of the machine, so are the processors. Without /proc none is known.
    const processors = cpus().length || availableParallelism()
    const each = Math.round((load / processors) * 100) / 100
    const message = `load of ${each} for each processor`
    if (each <= max_per_cpu) return passed(message)
    return failed(`${message}, expected ${max_per_cpu} at most`)
  },
})

/** A file was written lately, such as a backup; or it is there, or is not. */
export const fileAgeCheck = defineCheck('file_age', {
  takes: {
    path: Path,
    max_age_s: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    min_bytes: Type.Optional(Type.Integer({ minimum: 0 })),
    /** False for a file that must not be there, such as `/run/reboot-required`. */
    exists: Type.Optional(Type.Boolean()),
  },
  level: 'warning',
  nameOf: ({ path }) => `file_age ${path}`,
  mistakeOf({ max_age_s, min_bytes, exists }) {
    if (exists === undefined && max_age_s === undefined) {
      return ['', 'must have max_age_s or exists']
    }
    const isAsked = max_age_s !== undefined || min_bytes !== undefined
    return exists === false && isAsked
      ? ['/exists', 'must not be false with max_age_s or min_bytes']
      : undefined
  },
  async run({ path, max_age_s = Infinity, min_bytes = 0, exists = true }) {
    const note = await homeNote(path)
    if (note !== undefined) return unknown(note)
    if (!exists) return absenceOf(path)
    const file = await stat(path)
    const age = Math.round((Date.now() - file.mtimeMs) / 1_000)
    if (age < -MAX_AHEAD_S && max_age_s !== Infinity) {
      return unknown(
        `its time is ${-age} s ahead; set the clocks of this machine and of its writer`,
      )
    }
    const message = `written ${Math.max(0, age)} s ago`
    if (age > max_age_s) return failed(`${message}, expected ${max_age_s} s at most`)
    if (min_bytes > 0 && !file.isFile()) {
      return unknown('the size of a folder says nothing; take min_bytes out, or name a file')
    }
    if (file.size < min_bytes) {
      return failed(`${file.size} bytes, expected ${min_bytes} or more; ${message}`)
    }
    return passed(message)
  },
})

/** A file whose folder may not be entered is not known to be absent: that error says so. */
async function absenceOf(path: string): Promise<Finding> {
  const isThere = await stat(path).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT') return false
      throw error
    },
  )
  return isThere ? failed('is there, expected not to be') : passed('is not there')
}

function usage(used: number, most: number, what: string): Finding {
  const message = `${used} % ${what} used`
  return used <= most ? passed(message) : failed(`${message}, expected ${most} % at most`)
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 10
}

function kilobytes(text: string, name: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${name}:`))
  const [digits] = line?.match(/\d+/) ?? []
  return digits === undefined ? undefined : Number(digits)
}
