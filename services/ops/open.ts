import { memoryQueries } from '../../db/ops/agent/memories.ts'
import { unavailable } from '../../kernel/fault.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import { holderOf, machineId, seesProcesses } from '../../kernel/processes/proc.ts'
import { openSteadyTime, repeat, reportsTo } from '../../kernel/repeat.ts'
import type { SecretBox } from '../../kernel/secret-box.ts'
import { openAlerts } from './alerts/alerts/receive.ts'
import { startApprovals } from './agent/approvals/run.ts'
import type { ApprovalOptions } from './agent/approvals/take.ts'
import type { SynthesisConfig } from './alerts/alerts/brief.ts'
import type { AlertRules } from './alerts/alerts/outcome.ts'
import { openRunningConfig, type Config } from './config.ts'
import { createBeats } from './watch/beats.ts'
import { startCheckMeasures } from './watch/checks/health.ts'
import type { CheckRegistry } from './watch/checks/registry.ts'
import { startAlarms, type AlarmOptions } from './watch/alarms.ts'
import { startCheckLoop, type CheckLoop } from './watch/checks/loop.ts'
import type { Check, CheckResult } from './watch/checks/run.ts'
import { startWatch, type WatchOptions } from './watch/checks/watch.ts'
import { startInvestigations } from './alerts/investigations/investigations.ts'
import type { InvestigationSettings } from './alerts/investigations/waiting.ts'
import { startNotifier, type NotifyOptions } from '../notices/sender.ts'
import { openPause } from './agent/pause.ts'
import { createRedact } from './redact.ts'
import { createPublicStatus, type StatusOptions } from './watch/status.ts'
import { startRetention, type RetentionOptions } from './retention.ts'
import type { Runner } from './agent/runners/runner.ts'
import { startScheduler } from './agent/sessions/scheduler.ts'
import { openLineStream } from './agent/sessions/stream.ts'
import { openSessions } from './agent/sessions/sessions.ts'
import type { Patience } from './agent/sessions/supervisor.ts'

/** What the ops service is made from. */
export interface OpsOptions
  extends
    NotifyOptions,
    RetentionOptions,
    WatchOptions,
    AlarmOptions,
    InvestigationSettings,
    Pick<StatusOptions, 'statusServices'>,
    Pick<ApprovalOptions, 'dryRun'> {
  /** The configuration by flags, environment and defaults. */
  configured: () => Config
  /** Every configured secret: sessions must not put one out. */
  secrets: () => readonly string[]
  /** Encrypts what is stored; undefined without a key. */
  box: () => SecretBox | undefined
  /** The checks that were made by hand. */
  registry: CheckRegistry
  patience: Patience
  /** The runner of new sessions. */
  runner: () => Runner
  /** The model that writes briefs of alerts: its endpoint, name and prompt. */
  synthesis: (config: Config) => Promise<SynthesisConfig>
  /** The highest tier that the sender of an alert may ask for. */
  alertMaxTier: () => number
  alertRules: () => AlertRules
  random: RandomBytes
}

/** The running ops service, as its routes use it. */
export type Ops = Awaited<ReturnType<typeof openOps>>

const FADE_MS = 3_600_000

/** Opens the service on a migrated database, and fails the session of a process that has ended. */
export async function openOps(options: OpsOptions) {
  const { db, clock, log } = options
  const config = await openRunningConfig(
    db,
    clock,
    log,
    options.configured,
    options.statusServices,
  )
  const pause = await openPause(db, clock, log)
  const redact = createRedact(options.secrets)
  if (!seesProcesses()) {
    log.warn('no /proc: what a session starts is ended with its process group, and not looked for')
  }
  const resultsDir = config.current.results_dir
  const reader = { holder: holderOf(), machine: machineId() }
  const sessions = await openSessions({ ...options, ...reader, config, redact, resultsDir })
  const alerts = openAlerts({
    ...options,
    redact,
    sessions,
    reader,
    synthesis: () => options.synthesis(config.current),
  })
  const maxTier = () => config.current.max_tier
  const approvals = await startApprovals({ ...options, ...reader, redact, maxTier })
  const lines = await openLineStream(options, sessions)
  const steadyNow = openSteadyTime(clock)
  const fade = () => memoryQueries.fadeMemories(db, { now: steadyNow() })
  const reports = reportsTo(log, 'memories not faded', 'memories fade again')
  const fading = repeat(clock, FADE_MS, 'fading of memories', fade, reports)
  const retention = startRetention(options, resultsDir)
  const stops = [
    fading.stop,
    retention.close,
    startNotifier(options).close,
    config.close,
    pause.close,
    alerts.close,
    approvals.close,
    options.registry.close,
  ]
  const measures = startCheckMeasures({ ...options, redact })
  sessions.onChange(() => void measures.now())
  stops.push(measures.stop)
  let closed = false
  let loop: CheckLoop | undefined

  async function readChecks(): Promise<void> {
    await options.registry.refresh()
    await loop?.round()
  }

  async function startFirstSession(): Promise<void> {
    // Before the scheduled session: alerts that come while a session runs are only acknowledged.
    await alerts.resume()
    if (!closed) stops.push(startScheduler({ db, clock, log, config, redact, sessions }))
  }
  return {
    ...options,
    redact,
    config,
    pause,
    sessions,
    lines,
    alerts,
    approvals,
    /**
     * Call it once the listeners are up: starts the first session, and then one every interval.
     */
    begin(): void {
      loop = startCheckLoop({ ...options, redact })
      stops.push(loop.close, startWatch(options, loop), startAlarms(options, loop).stop)
      stops.push(startInvestigations({ ...options, redact, sessions }).stop)
      void fading.now()
      approvals.begin()
      retention.prune()
      void startFirstSession()
    },
    /** Why states of checks may be old, in a line; undefined while all run in time. */
    checksProblem: () => loop?.problem(),
    /** Runs a check once that is not listed yet. */
    async tryCheck(check: Check): Promise<CheckResult> {
      if (loop === undefined) throw unavailable('the server is starting')
      return loop.tryOnce(check)
    },
    /** What `/status` shows; undefined while it is off. */
    publicStatus: createPublicStatus({
      ...options,
      redact,
      statusServices: config.statusServices,
    }),
    /** Takes what the job of a heartbeat says. Throws 404 for an unknown token. */
    beat: createBeats({ db, clock, redact, loop: () => loop, refresh: readChecks }),
    /** Reads the checks again; awaited after a change of our own, so that it counts when the request is answered. */
    checksChanged: readChecks,
    async close(): Promise<void> {
      closed = true
      await Promise.all(stops.map((stop) => stop()))
      await sessions.close()
    },
  }
}
