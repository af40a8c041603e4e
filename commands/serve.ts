import { messageOf, type Log } from '../kernel/log.ts'
import { DONE, FAILED } from './output.ts'
import { openProgram, type Program, type ProgramOptions } from './program.ts'
import { runCommand } from '../services/ops/processes/run.ts'

/** Running requests may finish within this time; the whole stop takes ten seconds at most. */
const GRACE_MS = 7_000
const STOP_MS = 10_000

export interface ServeOptions extends ProgramOptions {
  /** Prints the ready line. */
  readonly ready: (line: string) => void
  readonly stopSignal: () => Promise<string>
}

/** `gatehouse serve`: runs until a signal comes, and gives the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const { log, stopSignal } = options
  process.umask(0o077)
  const manager = openServiceManager(log)
  const stop = new AbortController()
  const stopAsked = stopSignal().then((signal) => {
    log.info('stopping', { signal })
    manager.stopping()
    endInTime()
    stop.abort(new Error(`stopped by ${signal}`))
  })
  try {
    const program = await openProgram(options, stop.signal)
    sayReady(options, program)
    manager.ready(addressText(program))
    const failure = await Promise.race([stopAsked, program.failed])
    const failed = failure instanceof Error
    if (failed) {
      log.error('embedded database died', { error: messageOf(failure) })
      manager.stopping()
      endInTime()
    }
    await program.close(GRACE_MS)
    log.info('stopped')
    return failed ? FAILED : DONE
  } catch (error) {
    if (stop.signal.aborted) return DONE
    manager.stopping()
    // Parts that could not be closed must not keep the process alive.
    endInTime()
    throw error
  } finally {
    log.flush()
  }
}

/** Ends the process when the stop takes too long. */
function endInTime(): void {
  setTimeout(() => process.exit(FAILED), STOP_MS).unref()
}

function sayReady({ version, log, ready }: ServeOptions, program: Program): void {
  const addresses = addressText(program)
  ready(`gatehouse ${version} ready ${addresses}`)
  log.info('ready', { version, backend: program.backend, addresses })
}

function addressText({ addresses }: Program): string {
  return [...addresses].map(([service, address]) => `${service}=${address}`).join(' ')
}

/** Notifies systemd about this process; does nothing without systemd. */
export interface ServiceManager {
  /** All addresses are open; `status` is what `systemctl status` shows. */
  ready(status: string): void
  /** The stop has begun: the last notification. */
  stopping(): void
}

/** Longer than the five seconds for which `systemd-notify` waits for systemd to have read it. */
const TIMEOUT_MS = 10_000
const RETRY_MS = 5_000
/** Two notifications may fail before the watchdog's time is over. */
const TICKS = 3

/**
 * Notifies systemd by its program `systemd-notify`, because Node has no unix datagram sockets. A
 * timer sends each `WATCHDOG=1`, so it proves that the event loop runs. A failure is logged once
 * and tried again; it never ends or delays the program.
 */
export function openServiceManager(log: Log): ServiceManager {
  if (process.env['NOTIFY_SOCKET'] === undefined) {
    return { ready: () => undefined, stopping: () => undefined }
  }
  let over = false
  let failing = false

  async function tell(...states: readonly string[]): Promise<boolean> {
    const options = { timeoutMs: TIMEOUT_MS, inherit: ['NOTIFY_SOCKET'] }
    const { code, output, problem } = await runCommand(['systemd-notify', ...states], options)
    if (code !== 0 && !failing) {
      const reason = problem ?? `it ended with ${code}: ${output.trim()}`
      log.warn('systemd not told', { states: states[0], problem: reason })
    }
    failing = code !== 0
    return !failing
  }

  async function tellReady(status: string): Promise<void> {
    // systemd stops a service that never says READY.
    while (!over && !(await tell('READY=1', `STATUS=${status}`))) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
    }
  }

  let ticking = false
  async function tick(): Promise<void> {
    if (ticking) return
    ticking = true
    await tell('WATCHDOG=1')
    ticking = false
  }
  const limitMs = watchdogMs()
  const timer = limitMs === undefined ? undefined : setInterval(() => void tick(), limitMs / TICKS)
  timer?.unref()

  return {
    ready: (status) => void tellReady(status),
    stopping() {
      over = true
      clearInterval(timer)
      void tell('STOPPING=1')
    },
  }
}

/**
 * The time without a notification after which systemd kills the service, if it watches this
 * process.
 */
function watchdogMs(): number | undefined {
  const { WATCHDOG_USEC: limit = '', WATCHDOG_PID: watched = String(process.pid) } = process.env
  return /^[1-9]\d*$/.test(limit) && watched === String(process.pid)
    ? Number(limit) / 1_000
    : undefined
}
