import { collectWhenIdle } from '../kernel/idle.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
import { systemClock } from '../kernel/time.ts'
import { startWatchdog } from '../kernel/processes/watchdog.ts'
import { command, servicesArgument, servicesNamed, type ConfiguredTools } from './command.ts'
import { DONE, FAILED } from './output.ts'
import { openProgram, type Program, type ProgramOptions } from './program.ts'
import { runCommand } from '../kernel/processes/run.ts'

/** Running requests may finish within this time; the whole stop takes ten seconds at most. */
const GRACE_MS = 7_000
const STOP_MS = 10_000

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
      process.on('SIGHUP', config.reload)
      const { GATEHOUSE_WATCHDOG_S: seconds } = config.current
      const endWatch = seconds > 0 ? startWatchdog(log, seconds) : undefined
      try {
        return await serve({ ...tools, services: servicesNamed(named) })
      } finally {
        await endWatch?.()
        process.off('SIGHUP', config.reload)
        process.off('uncaughtException', logUncaught)
        log.flush()
      }
    },
  }),
]

type ServeOptions = ProgramOptions & Pick<ConfiguredTools, 'output' | 'stopSignal'>

/** Runs the services until a signal comes, and gives the exit code. */
async function serve(options: ServeOptions): Promise<number> {
  const { version, log, output, stopSignal } = options
  const manager = openServiceManager(log)
  const stop = new AbortController()
  let endInTime: NodeJS.Timeout | undefined
  function beginStop() {
    manager.stopping()
    // What was not closed by then is cut.
    endInTime ??= setTimeout(() => endLate(log), STOP_MS).unref()
  }
  const stopAsked = stopSignal().then((signal) => {
    log.info('stopping', { signal })
    beginStop()
    stop.abort(new Error(`stopped by ${signal}`))
  })
  /** The ready line is printed once. systemd is told again when more addresses are open. */
  let isTold = false
  function tellReady(listening: Program['addresses']) {
    const addresses = addressText(listening)
    if (!isTold) output.out(`gatehouse ${version} ready ${addresses}`)
    isTold = true
    manager.ready(addresses)
    return addresses
  }
  try {
    const program = await openProgram({ ...options, onLinksAlone: tellReady }, stop.signal)
    const addresses = tellReady(program.addresses)
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
    manager.stopping()
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

/** Longer than the five seconds for which `systemd-notify` waits for systemd to have read it. */
const TIMEOUT_MS = 10_000
const RETRY_MS = 5_000
/** Two notifications may fail before the watchdog's time is over. */
const TICKS = 3

/**
 * Notifies systemd by its program `systemd-notify`, because Node has no unix datagram sockets. A
 * timer sends each `WATCHDOG=1`, so it proves that the event loop runs. A failure is logged once
 * and tried again; it never ends or delays the program. Without systemd nothing is done.
 */
function openServiceManager(log: Log) {
  if (process.env['NOTIFY_SOCKET'] === undefined) {
    return { ready: () => undefined, stopping: () => undefined }
  }
  let over = false
  let failing = false

  async function tell(state: string, ...more: readonly string[]) {
    const options = { timeoutMs: TIMEOUT_MS, inherit: ['NOTIFY_SOCKET'] }
    const command = ['systemd-notify', state, ...more]
    const { code, output, problem } = await runCommand(command, options)
    if (code !== 0 && !failing) {
      const reason = problem ?? `it ended with ${code}: ${output.trim()}`
      log.warn('systemd not told', { states: state, problem: reason })
    }
    failing = code !== 0
    return !failing
  }

  async function tellReady(status: string) {
    // systemd stops a service that never says READY.
    while (!over && !(await tell('READY=1', `STATUS=${status}`))) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
    }
  }

  const limitMs = watchdogMs()
  async function tick() {
    await tell('WATCHDOG=1')
  }
  const ticks = limitMs && repeat(systemClock, limitMs / TICKS, 'sign of life', tick)

  return {
    /** All addresses are open; `status` is what `systemctl status` shows. */
    ready: (status: string) => void tellReady(status),
    /** The stop has begun: the last notification. */
    stopping() {
      over = true
      if (ticks) void ticks.stop()
      void tell('STOPPING=1')
    },
  }
}

/**
 * The time without a notification after which systemd kills the service, if it watches this
 * process.
 */
function watchdogMs(): number | undefined {
  const own = String(process.pid)
  const { WATCHDOG_USEC: limit = '', WATCHDOG_PID: watched = own } = process.env
  if (watched !== own || !/^[1-9]\d*$/.test(limit)) return undefined
  return Number(limit) / 1_000
}
