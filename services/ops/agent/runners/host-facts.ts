import { readFile, stat, statfs } from 'node:fs/promises'
import * as os from 'node:os'
import { pause } from '../../../../kernel/time.ts'

/** What prompts say of the host; undefined where it can't be read in time. */
export type ReadHost = () => Promise<HostFacts | undefined>

export interface HostFacts {
  name: string
  /** Such as `Debian GNU/Linux 12 (bookworm)`. */
  system: string
  kernel: string
  uptimeS: number
  cpus: number
  /** Over 1, 5 and 15 minutes. */
  load: readonly number[]
  memory: Space
  disks: readonly Disk[]
}

interface Space {
  totalBytes: number
  /** What programs may still take. */
  freeBytes: number
}

interface Disk extends Space {
  path: string
}

/** A disk that is about to die may not answer at all: a session begins without these facts then. */
const MAX_WAIT_MS = 2_000
const MAX_DISKS = 8
/** The label of a stick may be the name of its folder, and a sentence for a model. */
const PLAIN_PATH = /^[\w./@+:-]{1,100}$/
const GIB = 1024 ** 3
const DAY_S = 86_400
const HOUR_S = 3_600

export const readHostFacts: ReadHost = async () => {
  const waiting = new AbortController()
  const late = pause(MAX_WAIT_MS, waiting.signal).then(() => undefined)
  const facts = await Promise.race([readFacts().catch(() => undefined), late])
  waiting.abort()
  return facts
}

async function readFacts(): Promise<HostFacts> {
  return {
    name: os.hostname(),
    system: await systemName(),
    kernel: `${os.type()} ${os.release()} ${os.machine()}`,
    uptimeS: os.uptime(),
    // Without /proc none is known.
    cpus: os.cpus().length || os.availableParallelism(),
    load: os.loadavg(),
    memory: { totalBytes: os.totalmem(), freeBytes: os.freemem() },
    disks: await readDisks(),
  }
}

async function systemName(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const [, name] = /^PRETTY_NAME="?([^"\n]*)/m.exec(text) ?? []
  return name ?? os.platform()
}

/** The file systems of local devices: one of a network may hang, and holds a thread meanwhile. */
async function readDisks(): Promise<readonly Disk[]> {
  const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '')
  /** Paths by device: what is mounted twice has one size. */
  const paths = new Map<string, string>()
  for (const line of mounts.split('\n')) {
    const [device = '', path = '', type = ''] = line.split(' ')
    // The root of a container is on no device of its own.
    const isShown = path === '/' || (device.startsWith('/dev/') && !type.startsWith('fuse'))
    if (isShown && PLAIN_PATH.test(path) && !paths.has(device)) paths.set(device, path)
  }
  const found = await Promise.all([...paths.values()].slice(0, MAX_DISKS).map(readDisk))
  return found.flatMap((disk) => (disk === undefined ? [] : [disk]))
}

/** Undefined for what has no size, and for a single file that a container has mounted. */
async function readDisk(path: string): Promise<Disk | undefined> {
  try {
    const [{ bsize, blocks, bfree, bavail }, place] = await Promise.all([statfs(path), stat(path)])
    if (blocks === 0 || !place.isDirectory()) return undefined
    // As df does: blocks reserved for root count as neither used nor free.
    return { path, totalBytes: (blocks - bfree + bavail) * bsize, freeBytes: bavail * bsize }
  } catch {
    // It was unmounted meanwhile, or may not be seen.
    return undefined
  }
}

/** The facts in a few lines for a model. */
export function describeHost(facts: HostFacts): string {
  const { name, system, kernel, uptimeS, cpus, load, memory, disks } = facts
  const loads = load.map((one) => one.toFixed(2)).join(', ')
  const each = disks.map((disk) => `${disk.path} ${describeSpace(disk)}`)
  return [
    `The host on which Gatehouse runs: ${name}, ${system}, ${kernel}, up ${describeUptime(uptimeS)}.`,
    `${cpus} CPUs, load ${loads}; memory ${describeSpace(memory)}.`,
    ...(each.length === 0 ? [] : [`Disks: ${each.join('; ')}.`]),
  ].join('\n')
}

function describeSpace({ totalBytes, freeBytes }: Space): string {
  const percent = Math.round(((totalBytes - freeBytes) / totalBytes) * 100)
  return `${percent} % of ${(totalBytes / GIB).toFixed(1)} GiB used`
}

function describeUptime(seconds: number): string {
  const days = Math.floor(seconds / DAY_S)
  const hours = Math.floor((seconds % DAY_S) / HOUR_S)
  const minutes = Math.floor((seconds % HOUR_S) / 60)
  return days > 0 ? `${days} d ${hours} h` : `${hours} h ${minutes} min`
}
