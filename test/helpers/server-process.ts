import { recordCommand } from './cli.ts'
import { seedEmbedded } from './backends.ts'
import type { Owner } from './owner.ts'
import { exitOf, spawnProgram, type Exit } from './program.ts'
import {
  keepCalls,
  parseReady,
  serverAddresses,
  serverEnv,
  type Addresses,
  type ServerOptions,
  type TestServer,
} from './server.ts'
import { overSocket } from './shared-postgres.ts'
import { transcript } from './secrets.ts'

/** What to start, and how. */
type ProcessOptions = ServerOptions & {
  /** Further arguments of `serve`. */
  flags?: readonly string[]
  /** Program instead of `node server.ts`, for the built executable. */
  program?: readonly string[]
  /** The test expects it to end by itself: no failure at clean-up. */
  mayExit?: boolean
  /** Limit for the ready line, 30 s when absent. */
  readyMs?: number
}

/** A server in a process of its own. */
export type ServerProcess = TestServer & {
  pid: number
  /** SIGTERM, and SIGKILL when it has not ended after 15 s. */
  stop(): Promise<Exit>
  /** SIGKILL: the crash. */
  kill(): Promise<Exit>
  /** Settles when the process ends, however that comes. */
  exited: Promise<Exit>
}

const STOP_MS = 15_000
/** So many lines of its log are told of a server that has failed. */
const LINES_TOLD = 1_000

/**
 * Starts `node server.ts serve` as a process and waits for its ready line. Rejects with the collected
 * stderr when it ends before. It is stopped with the test; having crashed by then fails the test.
 */
export async function startServerProcess(t: Owner, options: ProcessOptions = {}) {
  let env = await serverEnv(t, options)
  const args = ['serve', ...(options.services ?? []), ...(options.flags ?? [])]
  // Another program may run where the socket is not, and its own way to a fresh database is to be tested.
  if (options.program === undefined) {
    env = overSocket(env)
    await seedEmbedded(env)
  }
  const child = spawnProgram(args, env, options.program)
  const exited = exitOf(child)
  let [stdout, asked, over] = ['', options.mayExit === true, false]
  // Line by line: a long run says more than one string holds.
  const lines: string[] = []
  let begun = ''
  const stderr = () => [...lines.slice(-LINES_TOLD), begun].join('\n')
  const ready = Promise.withResolvers<Addresses>()
  const said = (what: string) =>
    new Error(`'${args.join(' ')}' ${what} its ready line; its output: ${stdout}${stderr()}`)

  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    transcript('log', text, 'server')
    stdout += text
    const addresses = parseReady(stdout)
    if (addresses !== undefined) ready.resolve(addresses)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    transcript('log', text, 'server')
    const [first = '', ...more] = text.split('\n')
    begun += first
    for (const next of more) {
      lines.push(begun)
      begun = next
    }
  })
  const readyMs = options.readyMs ?? 30_000
  const timer = setTimeout(() => ready.reject(said(`took over ${readyMs} ms for`)), readyMs)
  exited.then(
    ({ code, signal }) => {
      over = true
      recordCommand(['serve'], code)
      ready.reject(said(`ended with ${code ?? signal} before`))
    },
    (error: unknown) => ready.reject(error),
  )

  async function end(signal: NodeJS.Signals) {
    asked = true
    if (!over) child.kill(signal)
    const last = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    return exited.finally(() => clearTimeout(last))
  }
  t.teardown(async () => {
    const crashed = over && !asked
    const { code, signal } = await end('SIGTERM')
    if (crashed) throw new Error(`the server ended by itself (${code ?? signal}): ${stderr()}`)
  })

  try {
    const addresses = await ready.promise
    keepCalls(addresses)
    return Object.assign(serverAddresses(addresses), {
      pid: child.pid ?? 0,
      // A line that has only begun may be half of one, unless the process has ended.
      logs: () => [...lines, over ? begun : ''].filter((line) => line !== ''),
      stop: () => end('SIGTERM'),
      kill: () => end('SIGKILL'),
      exited,
    })
  } catch (error) {
    await end('SIGKILL')
    throw error
  } finally {
    clearTimeout(timer)
  }
}
