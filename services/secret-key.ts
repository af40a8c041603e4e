import type { Database } from '../db/client.ts'
import { secretKeyQueries as q, type Unreadable } from '../db/secret-key.ts'
import type { Log } from '../kernel/log.ts'
import type { SecretBox } from '../kernel/secret-box.ts'

// The key encrypts the secrets of providers, destinations, checks and targets of notices. The
// database has no more of it than the mark of what it seals.

/** What has a secret that a key can't read: `2 providers, 1 check`; empty for none. */
export async function describeUnreadable(
  db: Database,
  box: SecretBox | undefined,
): Promise<string> {
  const counts = await q.countUnreadable(db, { mark: box?.mark ?? Buffer.alloc(0) })
  return NOUNS.filter(({ noun }) => counts[noun] > 0)
    .map(({ noun, one, several }) => `${counts[noun]} ${counts[noun] === 1 ? one : several}`)
    .join(', ')
}

const NOUNS: readonly { noun: keyof Unreadable; one: string; several: string }[] = [
  { noun: 'providers', one: 'provider', several: 'providers' },
  { noun: 'destinations', one: 'destination', several: 'destinations' },
  { noun: 'checks', one: 'check', several: 'checks' },
  { noun: 'notice_targets', one: 'target of notices', several: 'targets of notices' },
]

/** What helps where a key can't read what is stored. */
export const WAYS_BACK =
  'set GATEHOUSE_SECRET_KEY to the key that they were stored with, or give the secrets again'
export const SAME_KEY = 'give all instances on this database the same GATEHOUSE_SECRET_KEY'

/** Why this key is not the one of the last start on this database; undefined if it is. */
export async function keyDifference(
  db: Database,
  box: SecretBox | undefined,
): Promise<string | undefined> {
  const last = await q.readSecretKey(db, {})
  if (last === undefined || (box !== undefined && last.mark.equals(box.mark))) return undefined
  return box === undefined
    ? 'there is no key to encrypt secrets here, but the last start on this database had one'
    : 'the key that encrypts secrets is another one than at the last start on this database'
}

/** Warns of a key that other instances do not have, and of what it can't read. */
export async function reportSecretKey(
  db: Database,
  box: SecretBox | undefined,
  log: Log,
): Promise<void> {
  const difference = await keyDifference(db, box)
  if (difference !== undefined) {
    log.warn('secret key differs', { problem: difference, help: SAME_KEY })
  }
  const unreadable = await describeUnreadable(db, box)
  if (unreadable !== '') log.warn('secrets not readable', { of: unreadable, help: WAYS_BACK })
  if (box !== undefined) await q.recordSecretKey(db, { mark: box.mark })
}
