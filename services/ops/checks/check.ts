import type { Level } from '../../../db/ops/rows.ts'
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
  const timeoutMs = (check.timeout_s ?? TIMEOUT_S) * 1_000
  const deadline = AbortSignal.timeout(timeoutMs)
  const started = performance.now()
  const finding = await find(check, {
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

function find(check: Check, context: CheckContext): Promise<Finding> {
  switch (check.type) {
    case 'http':
      return httpCheck(check, context)
    case 'tcp':
      return tcpCheck(check, context)
    case 'tls':
      return tlsCheck(check, context)
    case 'dns':
      return dnsCheck(check, context)
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
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const inner = cause instanceof AggregateError ? cause.errors[0] : cause
  const code = inner instanceof Error && 'code' in inner ? String(inner.code) : undefined
  return WORDS[code ?? ''] ?? (inner instanceof Error ? inner.message : String(inner))
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
