import { auditQueries as q, type Change } from '../db/audit.ts'
import type { Database, Executor, Transaction } from '../db/client.ts'
import { actorText, type Actor } from '../kernel/actor.ts'

/** What a change is made with. */
export interface ChangeTools {
  db: Database
  /** Who makes it. */
  actor: Actor
}

/**
 * What is done to what. The action has the words of its command, such as `provider add`; the
 * subject is a name or an id, never a secret.
 */
export type ChangeNote = Pick<Change, 'service' | 'action' | 'subject'>

/** Makes a change and writes its line in the audit: both or, where `work` throws, neither. */
export function makeChange<T>(
  { db, actor }: ChangeTools,
  note: ChangeNote,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => {
    const made = await work(tx)
    await noteChange(tx, actor, note)
    return made
  })
}

/** Writes the line of a change; call it in the transaction that makes the change. */
export function noteChange(tx: Executor, actor: Actor, note: ChangeNote): Promise<void> {
  return q.addChange(tx, { ...note, actor: actorText(actor) })
}

/** The names of the given values that differ from those of before. */
export function changedNames(
  before: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): readonly string[] {
  return Object.keys(given).filter((name) => given[name] !== before[name])
}
