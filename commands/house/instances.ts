import cluster, { type Worker } from 'node:cluster'
import { inExecutable } from '../../kernel/assets.ts'
import { ConfigError } from '../../kernel/config.ts'
import { messageOf } from '../../kernel/log.ts'
import type { ConfiguredTools } from '../frame/command.ts'
import { instancesProblem, NUMBER_VARIABLE } from '../frame/configuration.ts'
import type { FromInstance } from './instance.ts'
import { openCollection } from './instance-metrics.ts'
import { DONE, FAILED } from '../frame/output.ts'
import { openAnnouncer } from './service-manager.ts'

/** The place of one of the processes; it has a worker while that runs. */
interface Place {
  number: number
  worker: Worker | undefined
  /** Where the worker listens, once it does. */
  addresses: string | undefined
}

/** How the process of an instance ended, or why it did not start. */
interface End {
  code?: number
  signal?: string | null
  error?: string
}

/** The first instance prepares the database for the others. */
type Phase = 'the first starts' | 'the others start' | 'all run' | 'stopping'

/** How long an instance that has ended is away. */
const RESTART_MS = 2_000
/** An instance stops within ten seconds by itself; one that hangs is killed. */
const KILL_MS = 12_000

/**
 * Runs the services in several processes that share the listeners, until a signal comes, and gives
 * the exit code. This process takes the connections and hands them out in turn (`node:cluster`); it
 * serves nothing itself. An instance that ends is started again.
 *
 * @throws ConfigError without a database server: the embedded one serves one process.
 */
export async function serveInstances(count: number, tools: ConfiguredTools): Promise<number> {
  const { config, log, stopSignal } = tools
  const problem = instancesProblem(config)
  if (problem !== undefined) throw new ConfigError(problem)
  const announcer = openAnnouncer(tools)
  const places = Array.from({ length: count }, (_, i) => placeOf(i + 1))
  const workers = () => places.flatMap(({ worker }) => worker ?? [])
  const metrics = openCollection(workers)
  const allEnded = Promise.withResolvers<void>()
  let phase: Phase = 'the first starts'
  let code = DONE
  let stoppedBy: NodeJS.Signals | undefined

  function start(place: Place) {
    // Only this process tells systemd.
    const environment = { [NUMBER_VARIABLE]: place.number, NOTIFY_SOCKET: undefined }
    const worker = cluster.fork(environment)
    place.worker = worker
    worker.on('message', (message: FromInstance) => {
      if (message.kind === 'ready') ready(place, message.addresses)
      else metrics.hear(worker, message)
    })
    worker.on('exit', (code, signal) => ended(place, { code, signal }))
    worker.on('error', (error) => {
      // One that runs has not got a message: if it has ended, its exit follows. One that the host
      // could not start has no exit.
      if (worker.process.pid === undefined) ended(place, { error: messageOf(error) })
    })
  }

  function ready(place: Place, addresses: string) {
    place.addresses = addresses
    if (phase === 'the first starts') {
      phase = 'the others start'
      for (const other of places.slice(1)) start(other)
    }
    if (phase === 'stopping' || places.some((one) => one.addresses === undefined)) return
    phase = 'all run'
    announcer.ready(addresses)
  }

  function ended(place: Place, { code: exitCode, signal, error }: End) {
    place.worker = undefined
    place.addresses = undefined
    if (phase === 'all run') {
      log.error('instance ended', { instance: place.number, code: exitCode, signal, error })
      setTimeout(() => phase === 'all run' && start(place), RESTART_MS)
      return
    }
    // One that still starts does not handle the signal: it ends by it, and has begun nothing.
    const isInOrder = exitCode === DONE || (phase === 'stopping' && signal === stoppedBy)
    if (!isInOrder) code = FAILED
    // One that can't start has said why, and the others would not fare better.
    if (phase !== 'stopping') stop('SIGTERM')
    if (workers().length === 0) allEnded.resolve()
  }

  function stop(signal: NodeJS.Signals) {
    phase = 'stopping'
    stoppedBy = signal
    announcer.stopping()
    if (workers().length === 0) allEnded.resolve()
    for (const worker of workers()) worker.process.kill(signal)
    setTimeout(() => {
      for (const { process } of workers()) process.kill('SIGKILL')
    }, KILL_MS).unref()
  }

  cluster.setupPrimary(thisProgram())
  process.on('SIGHUP', () => {
    for (const worker of workers()) worker.process.kill('SIGHUP')
  })
  places.slice(0, 1).forEach(start)
  void stopSignal().then((signal) => stop(signal as NodeJS.Signals))
  await allEnded.promise
  return code
}

function placeOf(number: number): Place {
  return { number, worker: undefined, addresses: undefined }
}

/**
 * How this program is started again. The executable has no file to run: what follows its name are
 * the program's own arguments.
 */
function thisProgram(): cluster.ClusterSettings {
  if (!inExecutable) return {}
  const [exec = 'serve', ...args] = process.argv.slice(2)
  return { exec, args }
}
