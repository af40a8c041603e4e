import { reportReload } from '../../commands/command-line.ts'
import { commandTable } from '../../commands/commands.ts'
import { setFlagsFromString } from 'node:v8'
import { openProgram } from '../../commands/house/program.ts'
import { assetText } from '../../kernel/assets.ts'
import { OTHER_NAMES, VARIABLES } from '../../commands/frame/configuration.ts'
import { openConfig } from '../../kernel/config.ts'
import { createLog } from '../../kernel/log.ts'
import { systemClock, type Clock } from '../../kernel/time.ts'
import type { Outbound } from '../../kernel/net/outbound.ts'
import { AGENT_SECRETS } from '../../services/ops/agent/runners/cli-agents.ts'
import { keepExchanges } from '../runner/exchanges.ts'
import { seedEmbedded } from './backends.ts'
import { FREE } from './cli.ts'
import { temporaryFolder, type Owner } from './owner.ts'
import { ENGINE_FLAGS, type Env, type Exit } from './program.ts'
import { transcript } from './secrets.ts'
import { overSocket } from './shared-postgres.ts'

const { version: VERSION }: { version: string } = JSON.parse(assetText('package.json'))

/** Variables that say where the configuration is. */
const PLACES: ReadonlySet<string> = new Set(['GATEHOUSE_ENV_FILE', 'CREDENTIALS_DIRECTORY'])

/** What to start. */
export type ServerOptions = {
  /** Services to start; all three when absent. */
  services?: readonly Service[]
  /** Variables over the test's own: loopback addresses on free ports, a fresh data directory. */
  env?: Env
  /** How other programs are reached. */
  outbound?: Outbound
  clock?: Clock
}

/** The time of the system, with rounds twenty times as often: a test waits less for the next one. */
export const HURRIED: Clock = {
  now: systemClock.now,
  elapsed: systemClock.elapsed,
  every: (ms, callback) => systemClock.every(ms / 20, callback),
}

/** A running product. The addresses throw for a service that was not started. */
export type TestServer = {
  hooks: string
  links: string
  ops: string
  /** What it has logged so far, by line (JSON). */
  logs(): readonly string[]
  /** Ends it as SIGTERM does; rejects when it can't be closed. */
  stop(): Promise<Exit>
}

/**
 * Opens the whole program in this process, as `serve` does, without its signals and exit codes. What a test needs
 * of a process (signals, a crash, flags, memory, an environment for children) has `startServerProcess`.
 */
export async function startServer(t: Owner, options: ServerOptions = {}): Promise<TestServer> {
  const environment = overSocket(await serverEnv(t, options))
  for (const name of Object.keys(environment)) {
    if (name in VARIABLES || PLACES.has(name)) continue
    // Redacted like our own secrets. An agent gets them from the environment of this process.
    if (AGENT_SECRETS.includes(name)) continue
    throw new Error(`${name} is no variable of the product: use startServerProcess`)
  }
  await seedEmbedded(environment)
  if (environment['DATABASE_URL'] === undefined) {
    for (const flag of ENGINE_FLAGS) setFlagsFromString(flag)
  }
  const lines: string[] = []
  const log = createLog(
    (text) => {
      transcript('log', text, 'server')
      lines.push(...text.trimEnd().split('\n'))
    },
    () => new Date(),
  )
  const config = openConfig(VARIABLES, {
    flags: {},
    environment,
    otherNames: OTHER_NAMES,
    onReload: reportReload(log),
  })
  const program = await openProgram(
    {
      config,
      services: options.services ?? SERVICES,
      version: VERSION,
      log,
      table: commandTable,
      ...(options.outbound && { outbound: options.outbound }),
      ...(options.clock && { clock: options.clock }),
    },
    new AbortController().signal,
  )
  let stopped: Promise<Exit> | undefined
  let failure: Error | undefined
  void program.failed.then((error) => (failure = error))
  function stop() {
    stopped ??= end()
    return stopped
  }
  async function end() {
    try {
      await program.close(0)
      return { code: 0, signal: null }
    } finally {
      log.flush()
      config.close()
    }
  }
  t.teardown(async () => {
    await stop()
    if (failure !== undefined) throw failure
  })
  const addresses = Object.fromEntries(program.addresses)
  keepCalls(addresses)
  return Object.assign(serverAddresses(addresses), {
    logs() {
      log.flush()
      return lines
    },
    stop,
  })
}

/** A server's variables: free ports on loopback, a fresh data directory, and what the options have. */
export async function serverEnv(t: Owner, options: ServerOptions): Promise<Env> {
  return { ...FREE, GATEHOUSE_DATA_DIR: await temporaryFolder(t), ...options.env }
}

/** Keeps the calls of the APIs at these addresses, to compare them with the APIs' documents. */
export function keepCalls(addresses: Addresses) {
  for (const name of ['hooks', 'links', 'ops'] as const) {
    const at = addresses[name]
    if (at?.startsWith('http') === true) keepExchanges(name, at)
  }
}

/** The addresses as properties that throw where a service was not started. */
export function serverAddresses(addresses: Addresses) {
  const address = (service: Service) => {
    const found = addresses[service]
    if (found === undefined) throw new Error(`${service} was not started: name it in services`)
    return found
  }
  return {
    get hooks() {
      return address('hooks')
    },
    get links() {
      return address('links')
    },
    get ops() {
      return address('ops')
    },
  }
}

/** The three services, by the names that the ready line and the command line use. */
export const SERVICES = ['hooks', 'links', 'ops'] as const

/** A service's name. */
export type Service = (typeof SERVICES)[number]

/** Addresses of the services that a ready line names. */
export type Addresses = Partial<Record<Service, string>>

const READY = /^gatehouse \S+ ready((?: [a-z]+=\S+)+)$/m

/** Reads `gatehouse 0.1.0 ready hooks=http://… links=http://… ops=http://…` out of a server's output. */
export function parseReady(stdout: string) {
  const pairs = READY.exec(stdout)?.[1]
  // A line that is still arriving would give a cut address.
  if (pairs === undefined || !stdout.slice(stdout.indexOf(pairs)).includes('\n')) return undefined
  const addresses: Addresses = {}
  for (const pair of pairs.trim().split(' ')) {
    const [name, address] = pair.split('=', 2)
    const service = SERVICES.find((known) => known === name)
    if (service !== undefined && address !== undefined) addresses[service] = address
  }
  return addresses
}
