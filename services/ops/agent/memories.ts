import * as Type from '../../../kernel/schema.ts'
import {
  memoryQueries as q,
  type Memory,
  type StoredMemory,
} from '../../../db/ops/agent/memories.ts'
import { nullable } from '../../../db/sql-file.ts'
import { actorText } from '../../../kernel/actor.ts'
import { Fault, found } from '../../../kernel/fault.ts'
import { field, withDefault } from '../../../kernel/validate.ts'
import { noteChange, type ChangeNote, type ChangeTools } from '../../audit.ts'

/** The confidence of what a person writes, or Gatehouse measures, for the first time. */
export const FIRST_CONFIDENCE = 0.7
/** The most that an agent's memory begins with: it may have read a stranger's text. */
export const AGENT_CONFIDENCE = 0.4
/** The least of one that a person has confirmed. */
const CONFIRMED_CONFIDENCE = 0.9
/** Memories of agents; the least sure one gives way to a new one. */
const MAX_AGENT_MEMORIES = 500

/** Suggestions: a category may be any text. */
export const CATEGORIES = [
  'timing',
  'dependency',
  'behavior',
  'remediation',
  'maintenance',
] as const

const NOT_BLANK = 'is required and must be a string that is not empty'
const NO_NUL = 'must have no NUL character'
const CONFIDENCE = 'must be a number from 0 to 1'
const ACTIVE = 'must be true or false'

const observation = text(10_000)
const confidence = Type.Number({ minimum: 0, maximum: 1 })
const EXAMPLE = {
  observation: 'slow for ten minutes after the backup at 03:00',
  confidence: 0.8,
  active: true,
}

/** What POST /memories takes. */
export const MemoryCreation = Type.Object(
  {
    category: text(100, { examples: [...CATEGORIES] }),
    observation,
    confidence: field(withDefault(confidence, FIRST_CONFIDENCE), CONFIDENCE),
    active: field(withDefault(Type.Boolean(), true), ACTIVE),
    service: field(
      withDefault(nullable(Type.String({ maxLength: 200 })), null),
      'must be a string with 200 characters at most, or null',
      [(service) => !service?.includes('\0'), NO_NUL],
    ),
  },
  { examples: [{ service: 'shop', category: 'timing', ...EXAMPLE }] },
)

/** What PUT /memories takes; all of it is required. */
export const MemoryUpdate = Type.Object(
  {
    observation,
    confidence: field(confidence, { wrong: CONFIDENCE, missing: `is required and ${CONFIDENCE}` }),
    active: field(Type.Boolean(), `is required and ${ACTIVE}`),
  },
  { examples: [EXAMPLE] },
)

/** The same as a form, where a box that is not ticked is left out. */
export const MemoryForm = Type.Object({
  ...MemoryUpdate.properties,
  active: withDefault(Type.Boolean(), false),
})

/** Adds a memory of an operator. */
export function createMemory(
  { db, actor }: ChangeTools,
  { service, ...memory }: Type.Static<typeof MemoryCreation>,
  now: Date,
): Promise<Memory> {
  const named = service?.trim() === '' ? null : service
  return db.transaction(async (tx) => {
    const row = { ...memory, service: named, session: null, tier: 0, now }
    const added = await q.addMemory(tx, row)
    await noteChange(tx, actor, noteOf('add', added))
    return publicMemory(added)
  })
}

/** Changes a memory; throws 404 where it is not there. */
export function changeMemory(
  { db, actor }: ChangeTools,
  id: number,
  update: Type.Static<typeof MemoryUpdate>,
  now: Date,
): Promise<Memory> {
  return db.transaction(async (tx) => {
    const changed = found(await q.updateMemory(tx, { id, ...update, now }), 'memory')
    await noteChange(tx, actor, noteOf('change', changed))
    return publicMemory(changed)
  })
}

/** A memory as the API shows it. */
export function publicMemory({ confirmed_by: _by, ...memory }: StoredMemory): Memory {
  return memory
}

/** A person says that a memory of a session is true. Throws 404, and 409 for a person's own. */
export function confirmMemory({ db, actor }: ChangeTools, id: number, now: Date): Promise<void> {
  return db.transaction(async (tx) => {
    const change = { id, by: actorText(actor), confidence: CONFIRMED_CONFIDENCE, now }
    const confirmed = await q.confirmMemory(tx, change)
    if (confirmed === undefined) {
      found(await q.findMemory(tx, { id }), 'memory')
      throw new Fault(409, 'CONFLICT', 'a person wrote this memory: nothing is left to confirm')
    }
    await noteChange(tx, actor, noteOf('confirm', confirmed))
  })
}

/** Removes a memory; throws 404 where it is not there. */
export async function removeMemory({ db, actor }: ChangeTools, id: number): Promise<void> {
  await db.transaction(async (tx) => {
    const removed = found(await q.removeMemory(tx, { id }), 'memory')
    await noteChange(tx, actor, noteOf('remove', removed))
  })
}

type NewMemory = Parameters<typeof q.addMemory>[1]

/** Saves what an agent learned, or strengthens the memory that already says so. */
export function remember({ db, actor }: ChangeTools, memory: NewMemory): Promise<Memory> {
  const confidence = Math.min(memory.confidence, AGENT_CONFIDENCE)
  return db.transaction(async (tx) => {
    const known = await q.strengthenMemory(tx, memory)
    if (known !== undefined) {
      await noteChange(tx, actor, noteOf('strengthen', known))
      return known
    }
    const added = await q.addMemory(tx, { ...memory, confidence })
    await q.trimMemories(tx, { added: added.id, kept: MAX_AGENT_MEMORIES - 1 })
    await noteChange(tx, actor, noteOf('add', added))
    return added
  })
}

/** The line of a change in the audit: what a memory says may hold a secret. */
function noteOf(verb: string, { id }: Pick<Memory, 'id'>): ChangeNote {
  return { service: 'ops', action: `memory ${verb}`, subject: `memory ${id}` }
}

/** The author of a memory, for the agent. */
export function authorOf({
  tier,
  session_id,
  confirmed_by,
}: Pick<StoredMemory, 'tier' | 'session_id' | 'confirmed_by'>): string {
  if (tier === 0) return 'operator'
  const session = session_id === null ? 'a session' : `session ${session_id}`
  return `${session}, tier ${tier}${confirmed_by === null ? '' : ', confirmed by a person'}`
}

function text(maxLength: number, options: Type.TStringOptions = {}): Type.TString {
  return field(
    Type.String({ minLength: 1, maxLength, ...options }),
    { wrong: NOT_BLANK, maxLength: `may have ${maxLength} characters at most` },
    [(value) => value.trim() !== '', NOT_BLANK],
    [(value) => !value.includes('\0'), NO_NUL],
  )
}
