import type { Executor } from '../../db/client.ts'
import { listOpenActions } from '../../db/ops/actions.ts'
import { endMarked } from '../../kernel/spawn.ts'

/** The marker of an operation: one of its own, as what it starts is to outlive its session when it ends well. */
export function operationMarker(session: string, action: number): string {
  return `${session}/${action}`
}

/**
 * Ends the processes that a session has left whose holder is gone, with those of its operations whose end nobody
 * was left to note. Its own need no database.
 */
export async function endLeft(
  db: Executor,
  { id, marker }: { readonly id: number; readonly marker: string },
): Promise<void> {
  await endMarked(marker)
  for (const action of await listOpenActions(db, id))
    await endMarked(operationMarker(marker, action))
}
