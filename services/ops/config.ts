import * as Type from '../../kernel/schema.ts'
import type { Database } from '../../db/client.ts'
import { configQueries as q } from '../../db/ops/config.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Log } from '../../kernel/log.ts'
import { repeat, reportsTo } from '../../kernel/repeat.ts'
import type { Actor } from '../../kernel/actor.ts'
import { badRequest } from '../../kernel/fault.ts'
import { field, parsed } from '../../kernel/validate.ts'
import { changedNames, noteChange } from '../audit.ts'
import { nameProblem } from './variables.ts'

/** The largest `integer` of PostgreSQL. */
const MAX_INTERVAL = 2_147_483_647
const DRY_RUN = 'must be true or false'
const Interval = Type.Integer({
  minimum: 1,
  maximum: MAX_INTERVAL,
  description: 'Seconds between scheduled sessions',
})
const Model = Type.String({ minLength: 1, maxLength: 200 })
const DryRun = Type.Boolean({ description: 'Operations are only recorded, never run' })

/** ops.md section 2, Config. */
export const Config = Type.Object({
  interval: Interval,
  tier1_model: Model,
  tier2_model: Model,
  tier3_model: Model,
  dry_run: DryRun,
  max_tier: Type.Integer({ minimum: 1, maximum: 3, readOnly: true }),
  state_dir: Type.String({ readOnly: true }),
  results_dir: Type.String({ readOnly: true }),
  repos_dir: Type.String({ readOnly: true }),
})
export type Config = Type.Static<typeof Config>

/** What PUT config may change. */
export const ConfigUpdate = Type.Object(
  {
    interval: field(Type.Optional(Interval), 'must be a positive integer'),
    dry_run: field(Type.Optional(DryRun), DRY_RUN),
    tier1_model: model('tier1_model'),
    tier2_model: model('tier2_model'),
    tier3_model: model('tier3_model'),
  },
  { examples: [{ interval: 1_800 }] },
)
export type ConfigUpdate = Type.Static<typeof ConfigUpdate>

/**
 * The same as a form: a list of two options, because a form without a box would turn dry run off.
 */
export const ConfigForm = Type.Object({
  ...ConfigUpdate.properties,
  dry_run: parsed(Type.Optional(Type.Unsafe<boolean>({ type: 'string' })), DRY_RUN, (text) =>
    text === 'true' || text === 'false' ? text === 'true' : undefined,
  ),
})

export type RunningConfig = Awaited<ReturnType<typeof openRunningConfig>>

const POLL_MS = 5_000

/**
 * Follows the saved configuration, which overrides what flags, environment and defaults say
 * (`configured`, `statusServices`).
 */
export async function openRunningConfig(
  db: Database,
  clock: Clock,
  log: Log,
  configured: () => Config,
  statusServices: () => readonly string[] | undefined = () => undefined,
) {
  let saved = await q.readSettings(db, {})

  async function read(): Promise<void> {
    saved = await q.readSettings(db, {})
  }
  const reports = reportsTo(log, 'ops settings not read', 'ops settings are read again')
  const polls = repeat(clock, POLL_MS, 'settings of ops', read, reports)
  await db.listen('ops_settings', () => void polls.now())

  function effective({ status_services: _others, ...settings }: typeof saved): Config {
    const overrides = Object.entries(settings).filter(([, value]) => value !== null)
    return { ...configured(), ...Object.fromEntries(overrides) }
  }

  return {
    get current(): Config {
      return effective(saved)
    },
    /** Saves the given values and applies them. */
    async update(changes: ConfigUpdate, actor: Actor): Promise<Config> {
      const nothing = { interval: null, tier1_model: null, tier2_model: null, tier3_model: null }
      await db.transaction(async (tx) => {
        const names = changedNames(effective(await q.lockSettings(tx, {})), changes)
        await q.writeSettings(tx, { ...nothing, dry_run: null, ...changes })
        if (names.length === 0) return
        const note = {
          service: 'ops',
          action: 'config change',
          subject: names.join(', '),
        } as const
        await noteChange(tx, actor, note)
      })
      await polls.now()
      // The database may have failed since: what was saved counts in any case.
      return { ...this.current, ...changes }
    },
    /** The services that the status page shows; undefined while it is off. */
    statusServices(): readonly string[] | undefined {
      const chosen = saved.status_services ?? statusServices() ?? []
      return chosen.length === 0 ? undefined : chosen
    },
    /** Saves which services the status page shows; none switches it off. */
    async changeStatusServices(services: readonly string[], actor: Actor): Promise<void> {
      await db.transaction(async (tx) => {
        await q.writeStatusServices(tx, { services })
        const subject = 'status_services'
        await noteChange(tx, actor, { service: 'ops', action: 'config change', subject })
      })
      await polls.now()
    },
    close: polls.stop,
  }
}

function model(name: string) {
  return parsed(Type.Optional(Model), 'must be a string', (given) => {
    if (typeof given !== 'string') return undefined
    const problem = nameProblem(given)
    if (problem === undefined) return given
    throw badRequest(`${name} ${problem}`, name)
  })
}
