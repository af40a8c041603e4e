import { isatty } from 'node:tty'
import { collectWhenIdle } from '../../kernel/idle.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { startWatchdog } from '../../kernel/processes/watchdog.ts'
import {
  command,
  servicesArgument,
  servicesNamed,
  type ConfiguredTools,
} from '../frame/command.ts'
import type { ServiceName } from '../frame/configuration.ts'
import { DONE, FAILED } from '../frame/output.ts'
import { openProgram, type Program, type ProgramOptions } from './program.ts'
import { instanceFields, instanceNumber, openInstance } from './instance.ts'
import { serveInstances } from './instances.ts'
import { openAnnouncer, type Announcer } from './service-manager.ts'

/** Running requests may finish within this time; the whole stop takes ten seconds at most. */
const GRACE_MS = 7_000
const STOP_MS = 10_000
const STDIN = 0

export const commands = [
  command({
    name: 'serve',
    summary: 'run the services, all three unless named; it needs no command: gatehouse hooks',
    args: { service: servicesArgument('what to run') },
    needs: 'live configuration',
    async run({ args: { service: named } }, tools) {
      const { config, log } = tools
      process.umask(0o077)
      const logUncaught = (error: Error) => endUncaught(error, log)
      process.on('uncaughtException', logUncaught)
      // SIGHUP means that the terminal was closed. While it is open, or without one, it means a reload.
      const startedAtTerminal = isatty(STDIN)
      const hangUp = () => {
        if (startedAtTerminal && !isatty(STDIN)) process.kill(process.pid, 'SIGTERM')
        else config.reload()
      }
      process.on('SIGHUP', hangUp)
      const { GATEHOUSE_WATCHDOG_S: seconds } = config.current
      const endWatch = seconds > 0 ? startWatchdog(log, seconds, instanceFields()) : undefined
      try {
        return await serveOneOrMore(servicesNamed(named), tools)
      } finally {
        await endWatch?.()
        process.off('SIGHUP', hangUp)
        process.off('uncaughtException', logUncaught)
        log.flush()
      }
    },
  }),
]

/** Runs this process as it was asked to: alone, as one of several, or as the one that starts them. */
async function serveOneOrMore(services: readonly ServiceName[], tools: ConfiguredTools) {
  const { GATEHOUSE_INSTANCES: count } = tools.config.current
  const number = instanceNumber()
  if (number !== undefined) {
    const instance = openInstance(number)
    return await serve({ ...tools, services, instance, announcer: instance.announcer })
  }
  if (count > 1) return await serveInstances(count, tools)
  return await serve({ ...tools, services, announcer: openAnnouncer(tools) })
}

interface ServeOptions extends ProgramOptions, Pick<ConfiguredTools, 'output' | 'stopSignal'> {
  announcer: Announcer
}

/** Runs the services until a signal comes, and gives the exit code. */
async function serve(options: ServeOptions): Promise<number> {
  const { version, log, output, announcer, stopSignal } = options
  const stop = new AbortController()
  let endInTime: NodeJS.Timeout | undefined
  function beginStop() {
    announcer.stopping()
    // What was not closed by then is cut.
    endInTime ??= setTimeout(() => endLate(log), STOP_MS).unref()
  }
  const stopAsked = stopSignal().then((signal) => {
    log.info('stopping', { signal })
    beginStop()
    stop.abort(new Error(`stopped by ${signal}`))
  })
  function tellReady(listening: Program['addresses']) {
    const addresses = addressText(listening)
    announcer.ready(addresses)
    return addresses
  }
  try {
    const program = await openProgram({ ...options, onLinksAlone: tellReady }, stop.signal)
    const addresses = tellReady(program.addresses)
    if (program.newKey !== undefined) {
      output.out(
        `${program.newKey} is the new key of stored secrets: keep a copy, no backup has it`,
      )
    }
    log.info('ready', { version, backend: program.backend, addresses })
    collectWhenIdle()
    const failure = await Promise.race([stopAsked, program.failed])
    const failed = failure instanceof Error
    if (failed) {
      log.error('embedded database died', { error: messageOf(failure) })
      beginStop()
    }
    const errors = await program.close(GRACE_MS)
    for (const error of errors) log.error('not stopped in order', { error: messageOf(error) })
    log.info('stopped')
    return failed || errors.length > 0 ? FAILED : DONE
  } catch (error) {
    // It was stopped before it was open.
    if (stop.signal.aborted && error === stop.signal.reason) return DONE
    // Also keeps a later signal from setting the timer.
    beginStop()
    throw error
  } finally {
    clearTimeout(endInTime)
  }
}

function endLate(log: Log) {
  log.error('stopped late', { limit_ms: STOP_MS })
  log.flush()
  process.exit(FAILED)
}

function endUncaught(error: Error, log: Log) {
  log.error('uncaught exception', { error: messageOf(error), stack: error.stack })
  log.flush()
  process.exit(FAILED)
}

function addressText(addresses: Program['addresses']) {
  const parts = [...addresses].map(([service, address]) => `${service}=${address}`)
  return parts.join(' ')
}
