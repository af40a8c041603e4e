import type * as Type from '../../../../kernel/schema.ts'
import type { Level } from '../../../../db/notices.ts'
import { causeOf, codeOf, messageOf } from '../../../../kernel/log.ts'
import { MAX_STOP_MS } from '../../../../kernel/processes/run.ts'
import { fits, mismatchOf } from '../../../../kernel/validate.ts'
import {
  commonMistake,
  failed,
  unknown,
  type CheckContext,
  type CheckKind,
  type Finding,
  type Mistake,
} from './check.ts'
import { containerCheck } from './container.ts'
import { dnsCheck } from './dns.ts'
import { diskCheck, fileAgeCheck, loadCheck, memoryCheck } from './host.ts'
import { heartbeatCheck } from './heartbeat.ts'
import { httpCheck } from './http.ts'
import { pingCheck } from './ping.ts'
import { commandCheck, processCheck, unitCheck } from './programs.ts'
import { tcpCheck } from './tcp.ts'
import { tlsCheck } from './tls.ts'

const DEFAULT_TIMEOUT_S = 10
/** Programs get time to end when they are stopped. One that can't be ended is not waited for. */
const PROGRAM_STOP_MS = MAX_STOP_MS + 500

const KINDS = [
  httpCheck,
  tcpCheck,
  tlsCheck,
  dnsCheck,
  pingCheck,
  unitCheck,
  processCheck,
  diskCheck,
  memoryCheck,
  loadCheck,
  fileAgeCheck,
  commandCheck,
  containerCheck,
  heartbeatCheck,
]
/** The types of checks that use the network. The others start programs or read this machine. */
export const NETWORK_TYPES = KINDS.filter((kind) => 'peerOf' in kind).map(
  ({ schema }) => schema.properties.type.const,
)
/** What the inventory says of a check, by its type. */
export const CHECK_SCHEMAS = new Map(
  KINDS.map(({ schema }) => [schema.properties.type.const, schema]),
)

/**
 * The key of what only a check that was made by hand has: a symbol, so that it is no member of the
 * definition.
 */
export const BY_HAND = Symbol('made by hand')

/** A check of the inventory. */
export type Check = Type.Static<(typeof KINDS)[number]['schema']> & {
  /** `obstacle`: why its encrypted headers can't be read. */
  [BY_HAND]?: { obstacle: string | undefined }
}

/** The name of a check: its own, or what it looks at. */
export function nameOf(check: Check): string {
  return check.name ?? kindOf(check).nameOf(check)
}

/** Where a check is wrong and what is expected there; undefined for one that can run. */
export function mistakeIn(check: Check): Mistake | undefined {
  const schema = CHECK_SCHEMAS.get(check.type)
  if (schema === undefined) {
    return ['/type', `must be one of ${[...CHECK_SCHEMAS.keys()].join(', ')}`]
  }
  if (!fits(schema, check)) {
    const { path, message } = mismatchOf(schema, check)
    return [path, message]
  }
  return commonMistake(check) ?? levelMistake(check) ?? kindOf(check).mistakeOf?.(check)
}

/** Only a critical failure may start a session: people are not told of the others. */
function levelMistake(check: Check): Mistake | undefined {
  const { investigate = false } = check
  if (investigate === false || levelOf(check) === 'critical') return undefined
  return ['/investigate', 'must not be there without the level critical']
}

/** What a check found, how long it took, and the level of an event if it is not ok. */
export interface CheckResult extends Finding {
  level: Level
  ms: number
}

/** How bad it is if the check is not as it should be. */
export function levelOf(check: Check): Level {
  return check.level ?? kindOf(check).level
}

/** Runs a check. Never rejects: an error is a finding. */
export async function runCheck(
  check: Check,
  given: Omit<CheckContext, 'timeoutMs'>,
): Promise<CheckResult> {
  const { signal, redact } = given
  const timeoutMs = timeoutOf(check)
  const deadline = AbortSignal.timeout(timeoutMs)
  const context = { ...given, signal: AbortSignal.any([signal, deadline]), timeoutMs }
  const started = performance.now()
  const obstacle = check[BY_HAND]?.obstacle
  const found =
    obstacle === undefined ? runUntilAbort(check, context) : Promise.resolve(unknown(obstacle))
  const finding = await found.catch((error: unknown) => {
    if (isLate(context.signal)) return failed(`no answer within ${timeoutMs / 1_000} s`)
    return signal.aborted ? unknown('the session has ended') : findingOf(error)
  })
  const ms = Math.round(finding.ms ?? performance.now() - started)
  const level = levelOf(check)
  const isWarning = finding.state === 'fail' && level !== 'critical'
  const state = isWarning ? 'warn' : finding.state
  return { state, message: redact(finding.message), level, ms }
}

/** The peer that a check connects to, such as `shop.test:443`; undefined if it uses no network. */
export function peerOf(check: Check): string | undefined {
  return kindOf(check).peerOf?.(check)
}

/** Milliseconds after which a check is given up. */
export function timeoutOf({ timeout_s = DEFAULT_TIMEOUT_S }: { timeout_s?: number }): number {
  // Rounded: a timer takes no 2009.9999999999998 ms.
  return Math.max(1, Math.round(timeout_s * 1_000))
}

/** Whether the deadline of a check has passed; it may also be that its session has ended. */
function isLate({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof DOMException && reason.name === 'TimeoutError'
}

/**
 * Checks that were given up and still hang, for example on a file server that is gone, with the
 * time when they began.
 */
const hanging = new Map<string, number>()

/** Rejects when the signal aborts, even if the check hangs. */
async function runUntilAbort(check: Check, context: CheckContext): Promise<Finding> {
  const { signal, timeoutMs } = context
  signal.throwIfAborted()
  const id = JSON.stringify(check)
  // A hanging call of the file system blocks one of the few threads that all of them share.
  const hangsSince = hanging.get(id)
  if (hangsSince !== undefined) return hangingFinding(performance.now() - hangsSince, timeoutMs)
  const begun = performance.now()
  const finding = kindOf(check).run(check, context)
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const isProgram = ['unit', 'command', 'ping'].includes(check.type)
  let timer: NodeJS.Timeout | undefined
  function giveUp(): void {
    hanging.set(id, begun)
    const end = (): void => void hanging.delete(id)
    finding.then(end, end)
    timer = setTimeout(() => reject(signal.reason), isProgram ? PROGRAM_STOP_MS : 0)
  }
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const found = await Promise.race([finding, aborted])
    // What a stopped program found is that it was stopped.
    if (timer !== undefined && isProgram) throw signal.reason
    return found
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}

/** A look that its session's end has interrupted may still have time left. */
function hangingFinding(ms: number, timeoutMs: number): Finding {
  const hangs = 'the last look at it has not ended yet'
  return ms < timeoutMs ? unknown(`${hangs}; look again`) : failed(`no answer: ${hangs}`)
}

type Kind = Omit<CheckKind<string, Type.TProperties>, 'schema'>

/** The kind of a check, whose functions take this check. */
function kindOf({ type }: Check): Kind {
  return KINDS.find(({ schema }) => schema.properties.type.const === type) as Kind
}

/** What an error means. Network errors say more by their code than by their message. */
function findingOf(error: unknown): Finding {
  const cause = causeOf(error)
  const code = codeOf(cause) ?? ''
  const obstacle = OBSTACLES[code]
  if (obstacle !== undefined) return unknown(obstacle)
  return failed(PROBLEMS[code] ?? messageOf(cause))
}

const DENIED = 'permission denied; give the user of Gatehouse the right to it'
const NO_FILES = 'no more files can be opened here; raise LimitNOFILE of the service'
/** Errors of this machine: they say nothing about the checked service. */
const OBSTACLES: Readonly<Record<string, string>> = {
  EACCES: DENIED,
  EPERM: DENIED,
  EMFILE: NO_FILES,
  ENFILE: NO_FILES,
}
const PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name server does not answer',
  ENOENT: 'no such file',
}
