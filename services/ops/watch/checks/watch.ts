import { fetchProblem, type Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { CheckLoop } from './loop.ts'

export interface WatchOptions {
  clock: Clock
  log: Log
  /** The address of a monitor elsewhere, which notices silence; undefined for none. */
  heartbeatUrl: () => string | undefined
}

const CALL_MS = 60_000
const TIMEOUT_MS = 10_000

/**
 * Calls a monitor elsewhere once a minute while checks run in time (`GATEHOUSE_HEARTBEAT_URL`).
 * That monitor tells people when the calls end: nothing here could tell of its own end.
 */
export function startWatch({ clock, log, heartbeatUrl }: WatchOptions, loop: CheckLoop) {
  const stopping = new AbortController()

  async function call(): Promise<void> {
    const url = heartbeatUrl()
    if (url === undefined || loop.problem() !== undefined) return
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(TIMEOUT_MS)])
    const headers = { 'user-agent': 'gatehouse' }
    const response = await fetch(url, { headers, redirect: 'manual', signal }).catch(withoutUrl)
    await response.body?.cancel()
    if (!response.ok) throw new Error(`it answered ${response.status}`)
  }

  const reports = reportsTo(log, 'heartbeat not taken', 'heartbeats are taken again')
  const calls = repeat(clock, CALL_MS, 'heartbeat', call, reports)
  void calls.now()
  return () => {
    stopping.abort()
    return calls.stop()
  }
}

/** The address may have a key in it. */
function withoutUrl(error: unknown): never {
  throw new Error(fetchProblem(error))
}
