import { readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder, type Owner } from './owner.ts'
import { residentKib } from './process-figures.ts'
import type { Env } from './program.ts'
import { until } from './until.ts'

/** How a process is, in MiB and counts. */
export type Vitals = {
  rss: number
  /** Of the main thread's heap after a collection, with what lies outside of it. */
  heap: number
  /** Open files and sockets, but for those of the embedded engine's tables, which it keeps open. */
  files: number
  /** What keeps its event loop busy: sockets, servers, timers. */
  handles: number
}

const MIB = 2 ** 20
const CLUSTER = /\/pg\/(base|global|pg_\w+)\//

/**
 * Looks at a server from inside and outside. A module in its process answers a signal: only there the heap can be
 * seen.
 */
export async function openDoctor(t: Owner) {
  const folder = await temporaryFolder(t, 'vitals')
  const file = join(folder, 'vitals.json')
  const inside = `
    import { renameSync, writeFileSync } from 'node:fs'
    import { isMainThread } from 'node:worker_threads'
    const file = ${JSON.stringify(file)}
    if (isMainThread) process.on('SIGUSR2', () => {
      globalThis.gc()
      const { heapUsed, external } = process.memoryUsage()
      const handles = process.getActiveResourcesInfo().length
      writeFileSync(file + '.new', JSON.stringify({ heap: heapUsed + external, handles }))
      renameSync(file + '.new', file)
    })`
  const preload = `--import=data:text/javascript,${encodeURIComponent(inside)}`
  /** Goes to the server's variables. */
  const env: Env = { NODE_OPTIONS: `--expose-gc ${preload}` }
  return {
    env,
    async examine(pid: number): Promise<Vitals> {
      rmSync(file, { force: true })
      process.kill(pid, 'SIGUSR2')
      const text = await until(() => readFileSync(file, 'utf8'), 'the server to tell of its heap')
      const { heap, handles }: { heap: number; handles: number } = JSON.parse(text)
      const files = openFiles(pid).filter((path) => !CLUSTER.test(path)).length
      return { rss: residentKib(pid) / 1024, heap: heap / MIB, files, handles }
    },
  }
}

/** Where the open files of a process lead; one that has just been closed is none. */
function openFiles(pid: number) {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))]
    } catch {
      return []
    }
  })
}

/** The middle one of some numbers. */
export function median(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
