import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Memory } from './rows.ts'

/** What a list of memories is narrowed to; null for all. */
export interface MemoryFilter {
  readonly service: string | null
  readonly category: string | null
}

/** How long a check took, as a memory tells it. */
export interface CheckTime extends Pick<Memory, 'observation' | 'confidence' | 'tier'> {
  readonly service: string
  readonly check: string
  readonly session: number
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
  { service, category }: MemoryFilter,
  offset: number,
  limit: number,
): Promise<readonly Memory[]> {
  return many(db, q.listMemories, [offset, limit, service, category])
}

/** Active memories: first what operators wrote, then what sessions noted, each surest first. */
export function listActiveMemories(
  db: Executor,
  { service, category }: MemoryFilter,
  limit: number,
): Promise<readonly Memory[]> {
  return many(db, q.listActiveMemories, [service, category, limit])
}

/** Removes what agents noted but for one and the best `limit` others. */
export async function trimMemories(db: Executor, kept: number, limit: number): Promise<void> {
  await db.run(q.trimMemories, [kept, limit])
}

/** Notes the usual time of a check in the one memory that it has. */
export async function noteCheckTime(
  db: Executor,
  { service, check, observation, confidence, session, tier }: CheckTime,
  at: Date,
): Promise<void> {
  await db.run(q.noteCheckTime, [service, check, observation, confidence, at, session, tier])
}
