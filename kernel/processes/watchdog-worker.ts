import { writeSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { createLog } from '../log.ts'
import { logFormOf } from './self.ts'
import { NUMBER, TICK_MS, type Watched } from './watchdog.ts'

// The thread that watches. It writes by itself: what it writes through Node's streams would wait
// for the thread that is silent.

/** A silence is logged after this time. */
const TOLD_MS = 1_000
const STDERR = 2

const { numbers, begun, endAfterMs, common } = workerData as Watched
const log = createLog(write, () => new Date(), logFormOf(STDERR, common))

/** The last sign of life, and for how long there has been none. */
let sign: number | undefined
let silentMs = 0

function write(text: string) {
  try {
    writeSync(STDERR, text)
  } catch {
    // The reader is gone, or the disk is full: the line is lost, as a line of the other thread is.
  }
}

/** What began last may be what holds the thread, and is at least what it had begun just before. */
function lastBegun() {
  const text = Buffer.from(begun.slice(0, numbers[NUMBER.begunBytes])).toString()
  const [what = '', requestId = ''] = text.split('\n')
  return { last_begun: what, request_id: requestId === '' ? undefined : requestId }
}

/** Counts time in its own ticks, because a suspended machine or a stopped process has no ticks. */
function look() {
  const seen = numbers[NUMBER.signs]
  if (seen !== sign) {
    if (silentMs >= TOLD_MS) log.warn('the thread goes on', { ms: silentMs })
    sign = seen
    silentMs = 0
  } else {
    silentMs += TICK_MS
    if (silentMs === TOLD_MS) log.warn('the thread is silent', lastBegun())
    if (silentMs >= TOLD_MS) note(silentMs)
  }
  if (silentMs >= endAfterMs) {
    log.error('ended, because the thread was silent', { ...lastBegun(), ms: silentMs })
    log.flush()
    process.kill(process.pid, 'SIGKILL')
  }
  log.flush()
}

function note(ms: number) {
  numbers[NUMBER.longestMs] = Math.max(numbers[NUMBER.longestMs] ?? 0, ms)
}

setInterval(look, TICK_MS)
