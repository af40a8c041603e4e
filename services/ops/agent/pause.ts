import * as Type from '../../../kernel/schema.ts'
import type { Database, Executor } from '../../../db/client.ts'
import { pauseQueries as q, type StoredPause } from '../../../db/ops/agent/pause.ts'
import { nullable, Timestamp } from '../../../db/sql-file.ts'
import { actorText } from '../../../kernel/actor.ts'
import { badRequest } from '../../../kernel/fault.ts'
import type { Log } from '../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../kernel/repeat.ts'
import type { Clock } from '../../../kernel/time.ts'
import { field } from '../../../kernel/validate.ts'
import { noteChange, type ChangeTools } from '../../audit.ts'

// The switch that stops what the agent does by itself: sessions that nobody starts, and repairs.

/** What can be paused. */
export const PAUSABLE = ['investigations', 'repairs'] as const
export type Pausable = (typeof PAUSABLE)[number]

/** Since when something is paused, and who paused it; both null while it is not. */
const PauseState = Type.Object({
  paused: Type.Boolean(),
  since: nullable(Timestamp),
  by: nullable(Type.String()),
})
type PauseState = Type.Static<typeof PauseState>

export const Pause = Type.Object({ investigations: PauseState, repairs: PauseState })
export type Pause = Type.Static<typeof Pause>

const SWITCH = 'must be true to pause, or false to resume'
const Switch = field(Type.Optional(Type.Boolean()), SWITCH)

/** What is paused or resumed; what is left out stays. */
export const PauseRequest = Type.Object(
  { investigations: Switch, repairs: Switch },
  { additionalProperties: false, examples: [{ investigations: true, repairs: true }] },
)
export type PauseRequest = Type.Static<typeof PauseRequest>

/** What is paused at this moment. */
export async function readPause(db: Executor): Promise<Pause> {
  return toPause(await q.readPause(db, {}))
}

/**
 * Reads the same in a transaction that starts or admits something, and holds it until that ends. A
 * pause waits for such transactions, so nothing begins once it is answered.
 */
export async function holdPause(tx: Executor): Promise<Pause> {
  return toPause(await q.holdPause(tx, {}))
}

function toPause(stored: StoredPause): Pause {
  return {
    investigations: toState(stored.investigations_paused_at, stored.investigations_paused_by),
    repairs: toState(stored.repairs_paused_at, stored.repairs_paused_by),
  }
}

function toState(since: Date | null, by: string | null): PauseState {
  return { paused: since !== null, since, by }
}

/** Why something does not happen, in a line for people and models; undefined while it may. */
export function pauseProblem(pause: Pause, what: Pausable): string | undefined {
  const { since, by } = pause[what]
  return since === null ? undefined : `${what} are paused since ${since.toISOString()} by ${by}`
}

/** Pauses and resumes. What is as asked already keeps its time and its author. */
export function setPause(
  { db, actor }: ChangeTools,
  request: PauseRequest,
  now: Date,
): Promise<Pause> {
  const asked = PAUSABLE.filter((what) => request[what] !== undefined)
  if (asked.length === 0) throw badRequest('the body must name investigations, repairs or both')
  return db.transaction(async (tx) => {
    const pause = toPause(await q.lockPause(tx, {}))
    const changed = asked.filter((what) => request[what] !== pause[what].paused)
    if (changed.length === 0) return pause
    const by = actorText(actor)
    const states = changed.map((what) => {
      const state = request[what] === true ? toState(now, by) : toState(null, null)
      return [what, state] as const
    })
    const next: Pause = { ...pause, ...Object.fromEntries(states) }
    await q.writePause(tx, {
      investigations_paused_at: next.investigations.since,
      investigations_paused_by: next.investigations.by,
      repairs_paused_at: next.repairs.since,
      repairs_paused_by: next.repairs.by,
    })
    for (const what of changed) {
      const action = request[what] === true ? 'pause' : 'resume'
      await noteChange(tx, actor, { service: 'ops', action, subject: what })
    }
    return next
  })
}

const POLL_MS = 5_000

/** Follows what is paused, also by other instances. */
export async function openPause(db: Database, clock: Clock, log: Log) {
  let current = await readPause(db)
  async function read(): Promise<void> {
    current = await readPause(db)
  }
  const reports = reportsTo(log, 'pause not read', 'pause is read again')
  const polls = repeat(clock, POLL_MS, 'pause of ops', read, reports)
  await db.listen('ops_settings', () => void polls.now())
  return {
    get current(): Pause {
      return current
    },
    /** Reads it from the database. */
    read: () => readPause(db),
    /** Reads it again; awaited after a change of our own, so that the next page shows it. */
    refresh: polls.now,
    close: polls.stop,
  }
}
