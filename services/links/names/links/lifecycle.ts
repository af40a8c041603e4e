import * as Type from '../../../../kernel/schema.ts'
import type { Lifecycle } from '../../../../db/links/names/links.ts'
import { nullable, Timestamp } from '../../../../db/sql-file.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { INSTANT_FORM, readInstant } from '../../../../kernel/time.ts'
import { field, parsed } from '../../../../kernel/validate.ts'

const MAX_VISITS = 1_000_000_000

/** What a writer says of the end of a link. Omitted fields stay as they are; null clears one. */
export const lifecycleFields = {
  expires_at: parsed(
    Type.Optional(nullable(Timestamp)),
    `must be ${INSTANT_FORM}, or null`,
    (given) => (given === null ? null : readInstant(given)),
  ),
  max_visits: field(
    Type.Optional(
      nullable(
        Type.Integer({
          minimum: 1,
          maximum: MAX_VISITS,
          description: 'Counted since the link was made, previews left out.',
        }),
      ),
    ),
    `must be a whole number from 1 to ${MAX_VISITS.toLocaleString('en')}, or null`,
  ),
  archived: parsed(
    Type.Optional(Type.Unsafe<boolean>(nullable(Type.Boolean()))),
    'must be true, false or null',
    (given) => {
      if (given === null) return false
      return typeof given === 'boolean' ? given : undefined
    },
  ),
}

/** A link whose visits never end. */
export const ENDLESS: Lifecycle = { expires_at: null, max_visits: null, archived: false }

/**
 * Refuses an expiry in the past, unless the link has it already: who edits an expired link may
 * leave its expiry alone. Imports and restored versions may have one.
 */
export function refusePastExpiry(
  { expires_at }: Partial<Lifecycle>,
  now: Date,
  before: Lifecycle = ENDLESS,
): void {
  if (expires_at === undefined || expires_at === null || expires_at > now) return
  if (expires_at.getTime() === before.expires_at?.getTime()) return
  throw badRequest('expires_at must be in the future', 'expires_at')
}

/** Whether visits of a link have ended, and why: see `state_at` in the migrations. */
export const State = Type.Enum(['active', 'expired', 'used_up', 'archived'])
export type State = Type.Static<typeof State>

export type End = Exclude<State, 'active'>

/** Why visits of a link have ended; undefined while they have not. */
export function endOf(link: Lifecycle & { clicks: number }, now: Date): End | undefined {
  const { archived, expires_at, max_visits, clicks } = link
  if (archived) return 'archived'
  if (expires_at !== null && expires_at <= now) return 'expired'
  return max_visits !== null && clicks >= max_visits ? 'used_up' : undefined
}
