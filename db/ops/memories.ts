import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Memory } from './rows.ts'

/** What a list of memories is narrowed to; null for all. */
export interface MemoryFilter {
  readonly service: string | null
  readonly category: string | null
  readonly activeOnly: boolean
}

/** A memory that is about to be stored; it was created at `at`. */
export type NewMemory = Omit<Memory, 'id' | 'created_at' | 'updated_at'>

export function addMemory(db: Executor, memory: NewMemory, at: Date): Promise<Memory> {
  const { service, category, observation, confidence, active, session_id, tier } = memory
  const what = [service, category, observation, confidence, active]
  return one(db, q.addMemory, [...what, at, session_id, tier])
}

/** Raises the confidence of an observation that is known; undefined when it is new. */
export function strengthenMemory(
  db: Executor,
  { service, category, observation }: Pick<Memory, 'service' | 'category' | 'observation'>,
  at: Date,
): Promise<Memory | undefined> {
  return optional(db, q.strengthenMemory, [service, category, observation, at])
}

/** Takes confidence from memories that were not renewed for long. */
export async function fadeMemories(db: Executor, now: Date): Promise<void> {
  await db.run(q.fadeMemories, [now])
}

/** The memory as it is now; undefined when there is none. */
export function updateMemory(
  db: Executor,
  id: number,
  { observation, confidence, active }: Pick<Memory, 'observation' | 'confidence' | 'active'>,
  at: Date,
): Promise<Memory | undefined> {
  return optional(db, q.updateMemory, [id, observation, confidence, active, at])
}

/** False when there is no such memory. */
export async function removeMemory(db: Executor, id: number): Promise<boolean> {
  return (await optional(db, q.removeMemory, [id])) !== undefined
}

export function findMemory(db: Executor, id: number): Promise<Memory | undefined> {
  return optional(db, q.findMemory, [id])
}

/** Memories, surest first. */
export function listMemories(
  db: Executor,
  { service, category, activeOnly }: MemoryFilter,
  offset: number,
  limit: number,
): Promise<readonly Memory[]> {
  return many(db, q.listMemories, [offset, limit, service, category, activeOnly])
}
