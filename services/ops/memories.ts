import Type from 'typebox'
import type { Executor } from '../../db/client.ts'
import { addMemory, strengthenMemory, trimMemories, type NewMemory } from '../../db/ops/memories.ts'
import type { Memory } from '../../db/ops/rows.ts'

const CATEGORY_LONGEST = 100
const SERVICE_LONGEST = 200
const OBSERVATION_LONGEST = 10_000
/** What an agent says of the first time that it saw something. */
export const FIRST_CONFIDENCE = 0.7
/** How many notes of agents are kept: the least sure one gives way to a new one. */
const AGENT_NOTES = 500

const observation = Type.String({ minLength: 1, maxLength: OBSERVATION_LONGEST })
const confidence = Type.Number({ minimum: 0, maximum: 1 })
const EXAMPLE = {
  observation: 'slow for ten minutes after the backup at 03:00',
  confidence: 0.8,
  active: true,
}

/** The categories that are offered; any other text is one too. */
export const CATEGORIES = [
  'timing',
  'dependency',
  'behavior',
  'remediation',
  'maintenance',
] as const

/** What POST memories takes. */
export const MemoryCreation = Type.Object(
  {
    category: Type.String({ minLength: 1, maxLength: CATEGORY_LONGEST, examples: [...CATEGORIES] }),
    observation,
    service: Type.Optional(Type.Union([Type.String({ maxLength: SERVICE_LONGEST }), Type.Null()])),
    confidence: Type.Optional(Type.Number({ minimum: 0, maximum: 1, default: FIRST_CONFIDENCE })),
    active: Type.Optional(Type.Boolean({ default: true })),
  },
  { examples: [{ service: 'shop', category: 'timing', ...EXAMPLE }] },
)

/** What PUT memories takes; all of it is required. */
export const MemoryUpdate = Type.Object(
  { observation, confidence, active: Type.Boolean() },
  { examples: [EXAMPLE] },
)
export type MemoryUpdate = Type.Static<typeof MemoryUpdate>

type Body = Readonly<Record<string, unknown>>

/** Reads a new memory of an operator; a line says what is wrong with it. */
export function readMemory(body: Body): NewMemory | string {
  const { service = null, active = true } = body
  const category = readText(body, 'category', CATEGORY_LONGEST)
  if ('problem' in category) return category.problem
  const observed = readText(body, 'observation', OBSERVATION_LONGEST)
  if ('problem' in observed) return observed.problem
  const sure = body['confidence'] === undefined ? FIRST_CONFIDENCE : readConfidence(body)
  if (typeof sure === 'string') return sure
  if (typeof active !== 'boolean') return 'active must be true or false'
  if (service !== null && (typeof service !== 'string' || service.length > SERVICE_LONGEST)) {
    return `service must be a string with ${SERVICE_LONGEST} characters at most, or null`
  }
  if (service?.includes('\0')) return 'service must have no NUL character'
  return {
    service: service === null || service.trim() === '' ? null : service,
    category: category.text,
    observation: observed.text,
    confidence: sure,
    active,
    session_id: null,
    tier: 0,
  }
}

/** Reads a change of a memory; a line says what is wrong with it. */
export function readMemoryUpdate(body: Body): MemoryUpdate | string {
  const observed = readText(body, 'observation', OBSERVATION_LONGEST)
  if ('problem' in observed) return observed.problem
  const sure = readConfidence(body)
  if (typeof sure === 'string') return sure
  const { active } = body
  if (typeof active !== 'boolean') return 'active is required and must be true or false'
  return { observation: observed.text, confidence: sure, active }
}

/** What an agent learned: once more when it is known, else new. */
export async function remember(db: Executor, memory: NewMemory, at: Date): Promise<Memory> {
  const known = await strengthenMemory(db, memory, at)
  if (known !== undefined) return known
  const added = await addMemory(db, memory, at)
  await trimMemories(db, added.id, AGENT_NOTES - 1)
  return added
}

/** Who wrote a memory, as sessions are told. */
export function authorOf({ tier, session_id }: Pick<Memory, 'tier' | 'session_id'>): string {
  if (tier === 0) return 'operator'
  return session_id === null ? `a session, tier ${tier}` : `session ${session_id}, tier ${tier}`
}

function readText(
  body: Body,
  name: string,
  longest: number,
): { readonly text: string } | { readonly problem: string } {
  const value = body[name]
  if (typeof value !== 'string' || value.trim() === '') {
    return { problem: `${name} is required and must be a string that is not empty` }
  }
  if (value.length > longest) return { problem: `${name} may have ${longest} characters at most` }
  return value.includes('\0') ? { problem: `${name} must have no NUL character` } : { text: value }
}

function readConfidence({ confidence: value }: Body): number | string {
  const good = typeof value === 'number' && value >= 0 && value <= 1
  if (good) return value
  return `confidence ${value === undefined ? 'is required and ' : ''}must be a number from 0 to 1`
}
