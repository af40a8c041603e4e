import { checkQueries as q } from '../../../db/ops/watch/checks.ts'
import type { Database, Executor } from '../../../db/client.ts'
import { notFound, unavailable } from '../../../kernel/fault.ts'
import { createSingleFlight } from '../../../kernel/single-flight.ts'
import { escapeControls } from '../../../kernel/text.ts'
import type { Clock } from '../../../kernel/time.ts'
import { hashToken } from '../../../kernel/tokens.ts'
import { graceOf } from './checks/heartbeat.ts'
import type { CheckLoop } from './checks/loop.ts'
import type { Redact } from '../redact.ts'

/** What a job says of itself. */
export type BeatKind = 'ok' | 'failed' | 'begun'

interface BeatOptions {
  db: Database
  clock: Clock
  redact: Redact
  /** The rounds of checks; undefined until they begin. */
  loop: () => CheckLoop | undefined
  /** Reads the checks again. */
  refresh: () => Promise<void>
}

/** Bytes of what a job sends along that are kept: its last lines. */
const MAX_TEXT = 10 * 1024

/**
 * The receiver of heartbeats. Calls of one check that come together share one statement. For an unknown token the
 * checks are read once more, at most once a second however many ask: it may have been made just now, also elsewhere.
 * Throws 404 for a token that is unknown still.
 */
export function createBeats({ db, clock, redact, loop, refresh }: BeatOptions) {
  const saved = createSingleFlight<boolean>({ version: () => 0, elapsed: clock.elapsed })
  let refreshed = -Infinity

  async function find(rounds: CheckLoop, token: string) {
    const hash = hashToken(token).toString('hex')
    const known = rounds.heartbeat(hash)
    if (known !== undefined || clock.elapsed() - refreshed < REFRESH_MS) return known
    refreshed = clock.elapsed()
    await refresh()
    return rounds.heartbeat(hash)
  }

  return async (token: string, beat: BeatKind, sent = ''): Promise<void> => {
    const rounds = loop()
    if (rounds === undefined) throw unavailable('the server is starting')
    const listed = await find(rounds, token)
    if (listed === undefined) throw notFound('no heartbeat has this address')
    const { service, name, check } = listed
    const text = lastLines(redact(sent))
    const isThere = await saved(JSON.stringify([service, name, beat]), async () => {
      const said = { service, name, beat, text, grace_s: graceOf(check), now: clock.now() }
      return (await q.saveBeat(db, said)) !== undefined
    })
    if (!isThere) throw notFound('no heartbeat has this address')
  }
}

/** The last lines that the job of a heartbeat sent along; empty for other checks. */
export async function lastSaid(
  db: Executor,
  { type, service, name }: { type: string; service: string; name: string },
): Promise<string> {
  if (type !== 'heartbeat') return ''
  const { beat_text = '' } = (await q.findBeat(db, { service, name })) ?? {}
  return beat_text.split('\n').map(escapeControls).join('\n')
}

/** How often unknown tokens make the checks be read again, at most. */
const REFRESH_MS = 1_000

/** The last lines of a text, whole ones where it has been cut. */
function lastLines(text: string): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_TEXT) return text
  const end = bytes.subarray(bytes.length - MAX_TEXT).toString()
  return end.slice(end.indexOf('\n') + 1)
}
