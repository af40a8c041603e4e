import { recoveryQueries as q } from '../../../../db/hooks/receive/recoveries.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { HooksParts } from '../../registry.ts'
import type { Outbound } from '../../../../kernel/net/outbound.ts'
import { MAX_LOOK_MS } from './api.ts'
import { countsOf, lookAt } from './recoveries.ts'
import { API_URLS, type SenderName, type Source } from './sources.ts'

/** What is looked up, as the configuration has it now. */
export interface RecoverySchedule {
  sources: readonly Source[]
  intervalSeconds: number
  githubApi: URL
  tokens: Readonly<Record<SenderName, string | undefined>>
}

/** What the service is given for it. */
export interface RecoveryOptions extends Outbound {
  recovery: () => RecoverySchedule
  /** Our public address. */
  baseUrl: () => string
}

type ScheduleOptions = RecoveryOptions & Pick<HooksParts, 'db' | 'clock' | 'log'>

const POLL_MS = 1_000
/** A claim outlasts the longest look. */
const LEASE_MS = MAX_LOOK_MS + 60_000
/** What is refused this often will be refused again: by a wrong secret, or a bound of the body. */
const MAX_REFUSALS = 5

const TOKEN_VARIABLES: Readonly<Record<SenderName, string>> = {
  github: 'HOOKS_RECOVER_GITHUB_TOKEN',
  stripe: 'HOOKS_RECOVER_STRIPE_KEY',
}

/** The sources whose token is not set, with its variable. */
export function withoutToken({ sources, tokens }: Pick<RecoverySchedule, 'sources' | 'tokens'>) {
  return sources
    .filter(({ sender }) => tokens[sender] === undefined)
    .map(({ name, sender }) => ({ name, variable: TOKEN_VARIABLES[sender] }))
}

/** What a look came to. */
interface Outcome {
  problem: string | null
  /** How long the sender asks to wait. */
  waitMs: number
  counts: ReturnType<typeof countsOf> | null
}

/** Looks at the sources of `HOOKS_RECOVER`, each by one instance at a time. */
export function startRecoveries(options: ScheduleOptions) {
  const { db, clock, log, recovery } = options
  const closing = new AbortController()

  async function work(isStopped: () => boolean): Promise<void> {
    for (const source of recovery().sources) {
      if (isStopped()) return
      const claim = { source: source.name, lease_ms: LEASE_MS }
      const claimed = await q.claimRecovery(db, claim)
      if (claimed !== undefined) await runClaimed(source, claimed.problem)
    }
  }

  async function runClaimed(source: Source, before: string | null): Promise<void> {
    const { name } = source
    const { problem, waitMs, counts } = await outcomeOf(options, source, closing.signal)
    // What was cut at the stop says nothing of the sender.
    if (closing.signal.aborted) return q.releaseRecovery(db, { source: name })
    const wait_ms = Math.max(recovery().intervalSeconds * 1_000, waitMs)
    await q.saveRecovery(db, { source: name, wait_ms, problem, counts })
    const asked = counts?.reduce((sum, count) => sum + count.asked, 0) ?? 0
    if (asked > 0) log.info('redelivery asked for', { source: name, deliveries: asked })
    if (problem !== null && before === null) {
      log.warn('failed deliveries not recovered', { source: name, problem })
    }
    if (problem === null && before !== null) {
      log.info('failed deliveries are recovered again', { source: name })
    }
  }

  const reports = reportsTo(log, 'recovery not run', 'recovery is run again')
  const rounds = repeat(clock, POLL_MS, 'recovery', work, reports)
  return {
    /** Looks now at what is due: what failed while nobody listened. */
    begin: () => void rounds.now(),
    close(): Promise<void> {
      closing.abort()
      return rounds.stop()
    },
  }
}

async function outcomeOf(
  options: ScheduleOptions,
  source: Source,
  signal: AbortSignal,
): Promise<Outcome> {
  const { clock, recovery, baseUrl } = options
  const { tokens, githubApi } = recovery()
  const token = tokens[source.sender]
  if (token === undefined) {
    const problem = `${TOKEN_VARIABLES[source.sender]} is not set`
    return { problem, waitMs: 0, counts: null }
  }
  const url = source.sender === 'github' ? githubApi : new URL(API_URLS.stripe)
  const look = { source, url, token, baseUrl: baseUrl(), signal, since: undefined }
  try {
    const tools = { ...options, now: () => clock.now() }
    const found = await lookAt(tools, { ...look, isDryRun: false, maxRefusals: MAX_REFUSALS })
    return { ...found, counts: countsOf(found) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const waitMs = Number(error.headers['retry-after'] ?? 0) * 1_000
    return { problem: messageOf(error), waitMs, counts: null }
  }
}
