import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { temporaryFolder } from '../test/helpers/owner.ts'
import { anonymousKib } from '../test/helpers/process-figures.ts'
import { ROOT } from '../test/helpers/program.ts'
import { buildBareExecutable } from './helpers/bare-executable.ts'
import { freshDatabase } from './helpers/database.ts'
import { median, type Figure, type Owner, type Part } from './helpers/measure.ts'

const ROUNDS = 9
/** What the start has left behind is collected by then. */
const SETTLE_MS = 2_000

/** One start of an executable: until its ready line, and what it holds a moment later. */
interface Start {
  readonly readyMs: number
  /** Memory of its own, in MiB: without pages of the executable, which it shares with the page cache. */
  readonly ownMib: number
}

/** The executable beside a bare node:http one that is built in the same way, started in turn. */
export const executable: Part = {
  name: 'executable',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const folder = await temporaryFolder(owner, 'executable')
    const program = join(folder, 'gatehouse')
    execFileSync(process.execPath, ['deploy/build.ts', program], { cwd: ROOT, stdio: 'ignore' })
    const bare = buildBareExecutable(await temporaryFolder(owner, 'bare'))
    const url = await freshDatabase(owner)
    const data = await temporaryFolder(owner)

    const starts: Record<'bare' | 'server' | 'embedded', Start[]> = {
      bare: [],
      server: [],
      embedded: [],
    }
    let first = Number.NaN
    for (let round = -1; round < ROUNDS; round++) {
      const made = {
        bare: await startOnce(bare, {}),
        server: await startOnce(program, { DATABASE_URL: url }),
        embedded: await startOnce(program, { GATEHOUSE_DATA_DIR: data }),
      }
      // The first round migrates, creates the embedded database and reads the files from the disk.
      if (round < 0) first = made.embedded.readyMs
      else
        for (const name of ['bare', 'server', 'embedded'] as const) starts[name].push(made[name])
    }
    const ready = (name: keyof typeof starts) => median(starts[name].map(({ readyMs }) => readyMs))
    const held = (name: keyof typeof starts) => median(starts[name].map(({ ownMib }) => ownMib))
    return [
      { name: 'size, bare', value: statSync(bare).size / 1e6, unit: 'MB' },
      { name: 'size', value: statSync(program).size / 1e6, unit: 'MB' },
      { name: 'ready, bare', value: ready('bare'), unit: 'ms' },
      bounded('ready, PostgreSQL server', ready('server'), 'ms', 150),
      bounded('ready, embedded, existing directory', ready('embedded'), 'ms', 500),
      bounded('ready, embedded, first start', first, 'ms', 1_500),
      { name: 'memory, bare', value: held('bare'), unit: 'MiB' },
      bounded('memory, PostgreSQL server', held('server'), 'MiB', 40),
      { name: 'memory, embedded', value: held('embedded'), unit: 'MiB' },
    ]
  },
}

/** All three services, in an empty environment. */
async function startOnce(program: string, env: Readonly<Record<string, string>>): Promise<Start> {
  const addresses = {
    HOOKS_ADDR: '127.0.0.1:0',
    LINKS_ADDR: '127.0.0.1:0',
    OPS_ADDR: '127.0.0.1:0',
  }
  const started = performance.now()
  const child = spawn(program, [], {
    env: { ...addresses, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')
  try {
    for await (const line of createInterface(child.stdout)) {
      if (!line.includes('ready')) continue
      const readyMs = performance.now() - started
      await pause(SETTLE_MS)
      return { readyMs, ownMib: anonymousKib(child.pid ?? 0) / 1024 }
    }
    throw new Error(`${program} ended before it was ready; start it by hand to see why`)
  } finally {
    child.kill('SIGTERM')
    await exited
  }
}

function bounded(name: string, value: number, unit: string, most: number): Figure {
  return { name, value, unit, bound: `≤ ${most}`, kept: value <= most }
}
