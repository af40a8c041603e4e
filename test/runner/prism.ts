import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Owner, freePort } from '../helpers/owner.ts'
import { ROOT, exitOf, spawnProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

/** A part of a request or an answer that is not as the document has it. */
type Violation = {
  /** `request` or `response`, and where in it. */
  location: readonly string[]
  code: string | number
  message: string
}

const PINNED = join(ROOT, 'test', 'tools', 'prism')
const READY_MS = 30_000

/**
 * Starts `prism proxy` on a port of 127.0.0.1, between its callers and `upstream`; it lets all pass and notes what the
 * document does not say, and ends with the test.
 */
export async function startPrism(t: Owner, document: string, upstream: string) {
  const program = join(
    prismFolder(),
    'node_modules',
    '@stoplight',
    'prism-cli',
    'dist',
    'index.js',
  )
  const port = await freePort()
  const place = ['--host', '127.0.0.1', '--port', String(port)]
  const args = ['proxy', ...place, '--errors=false', '--verboseLevel=fatal', document, upstream]
  const child = spawnProgram(args, {}, [process.execPath, program])
  const exited = exitOf(child)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const ended = exited.then(() => {
    throw new Error(`prism ended: ${output.slice(-500)}`)
  })
  await Promise.race([ended, until(() => isTaken(port), 'prism to listen', READY_MS)])
  // Later its end is the clean-up's.
  ended.catch(() => undefined)
  return { base: `http://127.0.0.1:${port}` }
}

/** What prism noted of an exchange, from the header of its answer. */
export function violationsOf(
  header: string | readonly string[] | undefined,
): readonly Violation[] {
  if (typeof header !== 'string') return []
  // Cut off when there are very many.
  if (!header.startsWith('[')) return [{ location: ['response'], code: 'many', message: header }]
  return JSON.parse(header)
}

/**
 * The folder of the installed prism: fetched once, as its own lock file has it, and kept out of ours,
 * because it brings 213 packages that nothing else needs.
 */
function prismFolder() {
  const lock = readFileSync(join(PINNED, 'package-lock.json'))
  const version = createHash('sha256').update(lock).digest('hex').slice(0, 12)
  const folder = join(ROOT, '.cache', `prism-${version}`)
  if (existsSync(folder)) return folder
  mkdirSync(join(ROOT, '.cache'), { recursive: true })
  // Beside its place, and put there when it is whole: two runs may do this at once.
  const work = mkdtempSync(join(ROOT, '.cache', 'fetching-'))
  try {
    cpSync(PINNED, work, { recursive: true })
    // tap adds its loaders to every environment that spawn is given.
    const command = ['-u', 'NODE_OPTIONS', 'npm', 'ci', '--ignore-scripts']
    const { status, stderr, error } = spawnSync('env', command, { cwd: work, encoding: 'utf8' })
    if (status !== 0) {
      const why = error?.message ?? stderr.match(/^npm error .+$/m)?.[0] ?? `status ${status}`
      throw new Error(
        `missing: prism, which 'npm ci --ignore-scripts' in test/tools/prism fetches into .cache/ (${why})`,
      )
    }
    if (!existsSync(folder)) renameSync(work, folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return folder
}

/** Whether somebody listens on a port of 127.0.0.1. */
function isTaken(port: number) {
  const answered = Promise.withResolvers<boolean>()
  const socket = connect(port, '127.0.0.1', () => answered.resolve(true))
  socket.once('error', () => answered.resolve(false))
  return answered.promise.finally(() => socket.destroy())
}
