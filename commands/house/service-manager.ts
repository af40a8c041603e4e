import type { Log } from '../../kernel/log.ts'
import { runCommand } from '../../kernel/processes/run.ts'
import { repeat } from '../../kernel/repeat.ts'
import { systemClock } from '../../kernel/time.ts'
import type { Output } from '../frame/output.ts'

/** Longer than the five seconds for which `systemd-notify` waits for systemd to have read it. */
const TIMEOUT_MS = 10_000
const RETRY_MS = 5_000
/** Two notifications may fail before the watchdog's time is over. */
const TICKS = 3

/** Who hears that the program is ready, and that it stops. */
export interface Announcer {
  /** All addresses are open: `hooks=http://… links=http://…`. Also called when more are. */
  ready: (addresses: string) => void
  /** The stop has begun: the last announcement. */
  stopping: () => void
}

/** Tells whoever has started the program: by the ready line, which is printed once, and systemd. */
export function openAnnouncer({
  version,
  output,
  log,
}: {
  version: string
  output: Output
  log: Log
}): Announcer {
  const manager = openServiceManager(log)
  let isPrinted = false
  return {
    ready(addresses) {
      if (!isPrinted) output.out(`gatehouse ${version} ready ${addresses}`)
      isPrinted = true
      manager.ready(addresses)
    },
    stopping: manager.stopping,
  }
}

/**
 * Notifies systemd by its program `systemd-notify`, because Node has no unix datagram sockets. A
 * timer sends each `WATCHDOG=1`, so it proves that the event loop runs. A failure is logged once
 * and tried again; it never ends or delays the program. Without systemd nothing is done.
 */
function openServiceManager(log: Log): Announcer {
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
    /** `systemctl status` shows the addresses. */
    ready: (status) => void tellReady(status),
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
