import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import { muteQueries as q, type Mute, type MuteScope } from '../../../../db/ops/watch/mutes.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { actorText } from '../../../../kernel/actor.ts'
import { badRequest, Fault, found, notFound } from '../../../../kernel/fault.ts'
import {
  DURATION_FORM,
  INSTANT_FORM,
  parseDuration,
  readInstant,
} from '../../../../kernel/time.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { isZone, ZONE_FORM } from '../../../../kernel/days.ts'
import { EVERY_FORM, isEvery, occurrenceAt, type Occurrence } from './windows.ts'

// Times in which failures are not told: from now on, or a maintenance window to come, once or every
// week. Checks go on looking, and pages show what they find.

/** Bounds what is read with each list of checks. */
export const MAX_MUTES = 200
/** The longest mute or silence, in seconds. */
export const MAX_S = 366 * 86_400
const DEFAULT_ZONE = 'UTC'
const REASON = 'must say why, in 1 to 500 characters'
/** Why there is a mute, or a silence. */
export const Reason = field(
  Type.String({ minLength: 1, maxLength: 500 }),
  { wrong: REASON, missing: `is required and ${REASON}` },
  [(text) => text.trim() !== '' && !text.includes('\0'), REASON],
)
const NAME = 'must be a text of 200 characters at most, or null'

const Name = field(withDefault(nullable(Type.String({ maxLength: 200 })), null), NAME, [
  (name) => !name?.includes('\0'),
  NAME,
])
const Duration = parsed(
  Type.Optional(Type.Unsafe<number>({ type: 'string', description: DURATION_FORM })),
  `must be ${DURATION_FORM}`,
  (given) => parseDuration(String(given)),
)
/** A moment, which may be left out. */
export const Instant = parsed(
  Type.Optional(Type.Unsafe<Date>({ type: 'string', format: 'date-time' })),
  `must be ${INSTANT_FORM}`,
  readInstant,
)

const EVERY = `must be ${EVERY_FORM}`
const Every = field(Type.Optional(Type.String({ description: EVERY_FORM })), EVERY, [
  (text) => text === undefined || isEvery(text),
  EVERY,
])
const ZONE = `must be ${ZONE_FORM}`
const Zone = field(Type.Optional(Type.String({ maxLength: 60 })), ZONE, [
  (text) => text === undefined || isZone(text),
  ZONE,
])

/** What is muted, and when: for a time, until a moment, or every week; from now on unless it says another. */
export const MuteRequest = Type.Object(
  {
    service: Name,
    check: Name,
    for: Duration,
    starts_at: Instant,
    ends_at: Instant,
    every: Every,
    tz: Zone,
    reason: Reason,
  },
  {
    additionalProperties: false,
    examples: [
      { service: 'shop', check: null, for: '1h', reason: 'the shop moves' },
      {
        service: null,
        check: null,
        every: 'sun 02:00-04:00',
        tz: 'Europe/Berlin',
        reason: 'updates',
      },
    ],
  },
)
export type MuteRequest = Type.Static<typeof MuteRequest>

/** Mutes a check, a service or everything. Throws 400 and 404 for what can't be muted. */
export function addMute(
  { db, actor }: ChangeTools,
  request: MuteRequest,
  now: Date,
): Promise<Mute> {
  const { service, check, reason } = request
  const scope = { service, check_name: check }
  const times = timesOf(request, now)
  return db.transaction(async (tx) => {
    await refuseUnknown(tx, scope)
    const row = { ...scope, ...times, reason, author: actorText(actor), now, most: MAX_MUTES }
    const added = await q.addMute(tx, row)
    if (added === undefined) {
      throw new Fault(409, 'CONFLICT', `there are ${MAX_MUTES} mutes already: end one first`)
    }
    await noteChange(tx, actor, noteOf('mute', scope))
    return added
  })
}

/** Ends a mute, or cancels one to come; throws 404. */
export async function endMute({ db, actor }: ChangeTools, id: number, now: Date): Promise<void> {
  await db.transaction(async (tx) => {
    const scope = found(await q.endMute(tx, { id, now }), 'mute')
    await noteChange(tx, actor, noteOf('unmute', scope))
  })
}

/** Ends the present and future mutes of exactly this scope. Throws 404 where it has none. */
export async function endMutesOf(tools: ChangeTools, scope: MuteScope, now: Date) {
  const mutes = await listMutes(tools.db, now)
  const own = mutes.filter((mute) => isSameScope(mute, scope))
  const wider = mutes.find((mute) => covers(mute, scope) && mute.starts_at <= now)
  if (own.length === 0) {
    const cause = wider === undefined ? '' : ` by itself: ${scopeText(wider)} is`
    throw notFound(`${scopeText(scope)} is not muted${cause}`)
  }
  for (const { id } of own) await endMute(tools, id, now)
}

/** Those that last, and those to come. */
export async function listMutes(db: Executor, now: Date): Promise<readonly Mute[]> {
  const mutes = await q.listMutes(db, { now, limit: MAX_MUTES })
  // The time of one that comes back may have ended since the last round of checks.
  return mutes.map((mute) => {
    if (mute.every === null || mute.tz === null || mute.ends_at > now) return mute
    return { ...mute, ...occurrenceAt(mute.every, mute.tz, now) }
  })
}

/** Gives those that come back their next time. */
export async function renewMutes(db: Executor, now: Date): Promise<void> {
  for (const { id, every, tz } of await q.listPastTimes(db, { now, limit: MAX_MUTES })) {
    const next = occurrenceAt(every, tz, now)
    if (next !== undefined) await q.setMuteTime(db, { id, ...next })
  }
}

/** Of some mutes the one that mutes a check now; of several the last to end. */
export function muteOf(
  mutes: readonly Mute[],
  { service, name }: { service: string; name: string },
  now: Date,
): Mute | undefined {
  const scope = { service, check_name: name }
  return mutes
    .filter((mute) => mute.starts_at <= now && covers(mute, scope))
    .toSorted((a, b) => b.ends_at.getTime() - a.ends_at.getTime())[0]
}

/** What is muted, in words. */
export function scopeText({ service, check_name }: MuteScope): string {
  if (service === null) return 'everything'
  return check_name === null ? service : `${service}/${check_name}`
}

function covers({ service, check_name }: MuteScope, scope: MuteScope): boolean {
  if (service === null) return true
  return service === scope.service && (check_name === null || check_name === scope.check_name)
}

function isSameScope(one: MuteScope, other: MuteScope): boolean {
  return one.service === other.service && one.check_name === other.check_name
}

function timesOf({ every, tz, ...once }: MuteRequest, now: Date) {
  if (every === undefined) {
    if (tz !== undefined) throw badRequest('tz must not be given without every', 'tz')
    return { ...onceOf(once, now), every: null, tz: null }
  }
  if (once.for !== undefined || once.starts_at !== undefined || once.ends_at !== undefined) {
    throw badRequest('every must be given without for, starts_at and ends_at', 'every')
  }
  const next = occurrenceAt(every, tz ?? DEFAULT_ZONE, now)
  if (next === undefined) throw badRequest(`every must be ${EVERY_FORM}`, 'every')
  return { ...next, every, tz: tz ?? DEFAULT_ZONE }
}

function onceOf(
  { for: seconds, ...given }: Pick<MuteRequest, 'for' | keyof Occurrence>,
  now: Date,
) {
  if ((seconds === undefined) === (given.ends_at === undefined)) {
    throw badRequest('for, ends_at or every must be given, and one of them alone', 'for')
  }
  // No date has a year beyond 275760.
  if (seconds !== undefined && seconds > MAX_S) {
    throw badRequest('for must be a year at most', 'for')
  }
  const starts_at = given.starts_at ?? now
  const ends_at = given.ends_at ?? new Date(starts_at.getTime() + (seconds ?? 0) * 1_000)
  refuseTimes({ starts_at, ends_at }, now, given.ends_at === undefined ? 'for' : 'ends_at')
  return { starts_at, ends_at }
}

/** Throws 400 for times that a mute or a silence can't have. `end` is the field that gave its end. */
export function refuseTimes(
  { starts_at, ends_at }: Occurrence,
  now: Date,
  end: 'for' | 'ends_at',
): void {
  const must = end === 'for' ? 'for must end' : 'ends_at must be'
  if (ends_at <= now) throw badRequest(`${must} in the future`, end)
  if (ends_at <= starts_at) throw badRequest(`${must} after starts_at`, end)
  if (ends_at.getTime() - starts_at.getTime() > MAX_S * 1_000) {
    throw badRequest(`${must} within a year of the beginning`, end)
  }
}

async function refuseUnknown(tx: Executor, { service, check_name }: MuteScope): Promise<void> {
  if (service === null) {
    if (check_name === null) return
    throw badRequest('service must be given with check', 'service')
  }
  const { checks } = await q.countScope(tx, { service, check_name })
  if (checks > 0) return
  if (check_name === null) throw notFound(`there is no service "${service}" with checks`)
  throw notFound(`there is no check "${scopeText({ service, check_name })}"`)
}

function noteOf(verb: string, scope: MuteScope) {
  return { service: 'ops', action: `checks ${verb}`, subject: scopeText(scope) } as const
}
