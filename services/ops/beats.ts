import { checkQueries as q } from '../../db/ops/checks.ts'
import type { Database } from '../../db/client.ts'
import { notFound, unavailable } from '../../kernel/fault.ts'
import { createSingleFlight } from '../../kernel/single-flight.ts'
import type { Clock } from '../../kernel/time.ts'
import { hashToken } from '../../kernel/tokens.ts'
import type { CheckLoop } from './checks/loop.ts'

/** What a job says of itself. */
export type BeatKind = 'ok' | 'failed' | 'begun'

interface BeatOptions {
  db: Database
  clock: Clock
  /** The rounds of checks; undefined until they begin. */
  loop: () => CheckLoop | undefined
}

/**
 * The receiver of heartbeats. An unknown token costs no statement, and calls of one check that come
 * together share one. Throws 404 for an unknown token.
 */
export function createBeats({ db, clock, loop }: BeatOptions) {
  const saved = createSingleFlight<boolean>({ version: () => 0, elapsed: clock.elapsed })
  return async (token: string, beat: BeatKind): Promise<void> => {
    const rounds = loop()
    if (rounds === undefined) throw unavailable('the server is starting')
    const check = rounds.heartbeat(hashToken(token).toString('hex'))
    const found =
      check !== undefined &&
      (await saved(JSON.stringify([check.service, check.name, beat]), async () => {
        const { service, name } = check
        return (await q.saveBeat(db, { service, name, beat, now: clock.now() })) !== undefined
      }))
    if (!found) throw notFound('no heartbeat has this address')
  }
}
