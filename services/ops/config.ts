import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import { configQueries as q } from '../../db/ops/config.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import { nameProblem } from '../../kernel/variable-readings.ts'

/** What the database holds. */
const LONGEST_INTERVAL = 2_147_483_647
const Interval = Type.Integer({
  minimum: 1,
  maximum: LONGEST_INTERVAL,
  description: 'Seconds between scheduled sessions',
})
const Model = Type.String({ minLength: 1, maxLength: 200 })

/** ops.md section 2, Config. */
export const Config = Type.Object({
  interval: Interval,
  tier1_model: Model,
  tier2_model: Model,
  tier3_model: Model,
  dry_run: Type.Boolean({ description: 'Operations are only recorded, never run' }),
  max_tier: Type.Integer({ minimum: 1, maximum: 3, readOnly: true }),
  state_dir: Type.String({ readOnly: true }),
  results_dir: Type.String({ readOnly: true }),
  repos_dir: Type.String({ readOnly: true }),
})
export type Config = Type.Static<typeof Config>

/** What PUT config may change. */
export const ConfigUpdate = Type.Partial(
  Type.Pick(Config, ['interval', 'tier1_model', 'tier2_model', 'tier3_model', 'dry_run']),
  { examples: [{ interval: 1_800 }] },
)
export type ConfigUpdate = Type.Static<typeof ConfigUpdate>

/** The configuration as it runs: what was saved wins over flag, environment and default. */
export interface RunningConfig {
  readonly current: Config
  /** Saves what is given, and applies it. */
  update(changes: ConfigUpdate): Promise<Config>
  /** Calls back after each change, whichever instance made it. */
  onChange(callback: () => void): void
  close(): Promise<void>
}

const POLL_MS = 5_000

/** Reads a body of PUT config: read-only and unknown fields are ignored; a bad one refuses all. */
export function readConfigUpdate(body: Readonly<Record<string, unknown>>): ConfigUpdate | string {
  const { interval, dry_run } = body
  if (interval !== undefined && !isPositive(interval)) {
    return 'interval must be a positive integer'
  }
  if (dry_run !== undefined && typeof dry_run !== 'boolean') return 'dry_run must be true or false'
  const models: Record<string, string> = {}
  for (const name of ['tier1_model', 'tier2_model', 'tier3_model']) {
    const value = body[name]
    if (value === undefined) continue
    if (typeof value !== 'string') return `${name} must be a string`
    const problem = nameProblem(value)
    if (problem !== undefined) return `${name} ${problem}`
    models[name] = value
  }
  return {
    ...models,
    ...(interval !== undefined && { interval }),
    ...(dry_run !== undefined && { dry_run }),
  }
}

/** Follows the saved configuration. `configured` is what flags, environment and defaults say. */
export async function openRunningConfig(
  db: Database,
  clock: Clock,
  log: Log,
  configured: () => Config,
): Promise<RunningConfig> {
  const callbacks = new Set<() => void>()
  let saved = await q.readSettings(db, {})
  let asked = 0
  let taken = 0

  async function refresh(): Promise<void> {
    const turn = ++asked
    const fresh = await q.readSettings(db, {})
    // A read that began earlier must not bring back what a later one no longer found.
    if (turn < taken) return
    taken = turn
    const before = JSON.stringify(saved)
    saved = fresh
    if (JSON.stringify(saved) !== before) for (const callback of callbacks) callback()
  }
  const polls = repeat(clock, POLL_MS, refresh, {
    fails: (error) => log.warn('ops settings not read', { error: messageOf(error) }),
    works: () => log.info('ops settings are read again'),
  })
  await db.listen('ops_settings', () => void polls.now())

  const running: RunningConfig = {
    get current() {
      const given = Object.entries(saved).filter(([, value]) => value !== null)
      return { ...configured(), ...Object.fromEntries(given) }
    },
    async update(changes) {
      const nothing = { interval: null, tier1_model: null, tier2_model: null, tier3_model: null }
      await q.writeSettings(db, { ...nothing, dry_run: null, ...changes })
      await refresh()
      return running.current
    },
    onChange: (callback) => void callbacks.add(callback),
    close: polls.stop,
  }
  return running
}

function isPositive(value: unknown): value is number {
  return (
    typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= LONGEST_INTERVAL
  )
}
