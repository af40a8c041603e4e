import type { Level } from '../../../db/ops/events.ts'
import { causeOf, codeOf, messageOf } from '../../../kernel/log.ts'
import { MAX_STOP_MS } from '../processes/run.ts'
import type { Check } from '../inventory/schema.ts'
import { commandCheck, processCheck, unitCheck } from './programs.ts'
import type { CheckContext, Finding } from './finding.ts'
import { diskCheck, fileAgeCheck, loadCheck, memoryCheck } from './host.ts'
import { dnsCheck, httpCheck, tcpCheck, tlsCheck } from './network.ts'

/** The result of a check. */
export interface CheckResult extends Finding {
  /** Of the event when it fails. */
  readonly level: Level
  readonly ms: number
}

const TIMEOUT_S = 10

/** The level of a failed check where the inventory gives none: what is down, or what may soon be. */
const USUAL_LEVEL: Readonly<Record<Check['type'], Level>> = {
  http: 'critical',
  tcp: 'critical',
  tls: 'critical',
  dns: 'critical',
  unit: 'critical',
  process: 'critical',
  disk: 'warning',
  memory: 'warning',
  load: 'warning',
  file_age: 'warning',
  command: 'warning',
}

/** Runs one check within its deadline; it never rejects: what went wrong is what it found. */
export async function runCheck(
  check: Check,
  { signal, marker, redact }: Omit<CheckContext, 'timeoutMs'>,
): Promise<CheckResult> {
  // Whole ones: a timer of 2.01 s would be of 2009.9999999999998 ms, which is refused.
  const timeoutMs = Math.max(1, Math.round((check.timeout_s ?? TIMEOUT_S) * 1_000))
  const deadline = AbortSignal.timeout(timeoutMs)
  const started = performance.now()
  const finding = await look(check, {
    signal: AbortSignal.any([signal, deadline]),
    ...{ timeoutMs, marker, redact },
  }).catch((error: unknown): Finding => ({
    ok: false,
    message: problemOf(error, deadline, timeoutMs),
  }))
  const ms = Math.round(performance.now() - started)
  const message = redact(finding.message)
  return { ...finding, message, level: check.level ?? USUAL_LEVEL[check.type], ms }
}

/** Checks that were given up and that still hang, as on a file server that is gone. */
const hanging = new Set<string>()

/** Programs are told to end, and have the time for it; one that can't be ended is not waited for. */
const PROGRAMS: ReadonlySet<Check['type']> = new Set(['unit', 'command'])
const PROGRAM_ENDING_MS = MAX_STOP_MS + 500

/** Finds something, or rejects when the signal comes first, whatever hangs. */
async function look(check: Check, context: CheckContext): Promise<Finding> {
  const { signal } = context
  signal.throwIfAborted()
  const what = JSON.stringify(check)
  // One call of the file system that hangs holds one of the few threads that all of them share.
  if (hanging.has(what)) throw new Error('not looked at: the last look at it has not ended yet')
  const finding = find(check, context)
  const late = Promise.withResolvers<never>()
  let timer: NodeJS.Timeout | undefined
  function giveUp(): void {
    hanging.add(what)
    const end = (): void => void hanging.delete(what)
    finding.then(end, end)
    const wait = PROGRAMS.has(check.type) ? PROGRAM_ENDING_MS : 0
    timer = setTimeout(() => late.reject(signal.reason), wait)
  }
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const found = await Promise.race([finding, late.promise])
    // One that was told to end says no more than that.
    if (timer !== undefined) throw signal.reason
    return found
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}

function find(check: Check, context: CheckContext): Promise<Finding> {
  switch (check.type) {
    case 'http':
      return httpCheck(check, context)
    case 'tcp':
      return tcpCheck(check, context)
    case 'tls':
      return tlsCheck(check, context)
    case 'dns':
      return dnsCheck(check)
    case 'unit':
      return unitCheck(check, context)
    case 'process':
      return processCheck(check)
    case 'disk':
      return diskCheck(check)
    case 'memory':
      return memoryCheck(check)
    case 'load':
      return loadCheck(check)
    case 'file_age':
      return fileAgeCheck(check)
    case 'command':
      return commandCheck(check, context)
  }
}

/** Errors of the network say little in their message and more in their code. */
function problemOf(error: unknown, deadline: AbortSignal, timeoutMs: number): string {
  if (deadline.aborted) return `no answer within ${timeoutMs / 1_000} s`
  const cause = causeOf(error)
  return WORDS[codeOf(cause) ?? ''] ?? messageOf(cause)
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name server does not answer',
  ENOENT: 'no such file',
  EACCES: 'permission denied',
}
