import type { Executor } from '../../db/client.ts'
import { listOpenActions } from '../../db/ops/actions.ts'
import { endMarked } from '../../kernel/spawn.ts'

/** The marker of an operation: one of its own, as what it starts is to outlive its session when it ends well. */
export function operationMarker(session: string, action: number): string {
  return `${session}/${action}`
}

/** Ends the processes that a session has left, with those of its operations whose end is not noted. */
export async function endLeft(
  db: Executor,
  { id, marker }: { readonly id: number; readonly marker: string },
): Promise<void> {
  const actions = await listOpenActions(db, id)
  const markers = actions.map((action) => operationMarker(marker, action))
  for (const one of [marker, ...markers]) await endMarked(one)
}
