import type { TSchema } from '../../../../kernel/schema.ts'
import { CHECK_SCHEMAS } from './run.ts'

// The members of checks as texts: what a flag or a field of a form says, by the schemas of the
// types of checks.

/** How the value of a member is written as a text. */
export type Writing = 'text' | 'number' | 'switch' | 'lines' | 'pairs'

/** A member of some types of checks. */
export interface Member {
  name: string
  writing: Writing
  /** The types that have it; empty for a member of all. */
  types: readonly string[]
  schema: TSchema
  isRequired: boolean
}

/** What JSON Schema says of a member. */
interface Shape {
  type?: string | readonly string[]
  enum?: readonly unknown[]
}

/** Members that are no settings: who a check is. */
const IDENTITY = ['type', 'name']
/** Types that can't be made by hand. */
const IN_FILE_ONLY = ['command']

/** The types of checks that can be made by hand. */
export const TYPES_BY_HAND = [...CHECK_SCHEMAS.keys()].filter(
  (type): boolean => !IN_FILE_ONLY.includes(type),
)

/** The members of a type of checks, or of all types, in the order of their schemas. */
export function membersOf(type?: string): readonly Member[] {
  const types = type === undefined ? TYPES_BY_HAND : [type]
  const members = new Map<string, Member>()
  for (const one of types) {
    const { properties = {}, required = [] } = CHECK_SCHEMAS.get(one as 'tcp') ?? {}
    for (const [name, schema] of Object.entries<TSchema>(properties)) {
      if (IDENTITY.includes(name)) continue
      const known = members.get(name)
      members.set(name, {
        name,
        schema,
        writing: writingOf(schema),
        types: [...(known?.types ?? []), one],
        isRequired: required.includes(name as never),
      })
    }
  }
  return [...members.values()]
}

function writingOf(schema: Shape): Writing {
  const { type } = schema
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'boolean') return 'switch'
  if (type === 'array') return 'lines'
  return type === 'object' ? 'pairs' : 'text'
}

/** The value that a text means; a text that is not of its type stays, and its schema refuses it. */
export function readMember(
  { writing, schema }: Pick<Member, 'writing' | 'schema'>,
  text: string,
): unknown {
  const isNumber = text.trim() !== '' && Number.isFinite(Number(text))
  if (writing === 'number') return isNumber ? Number(text) : text
  if (writing === 'switch') return text === 'true' || text === 'on'
  if (writing === 'lines') return text.split('\n').filter((line) => line.trim() !== '')
  if (writing === 'pairs') return readPairs(text)
  const { type = '', enum: values = [] } = schema as Shape
  const chosen = values.find((value) => String(value) === text)
  if (chosen !== undefined) return chosen
  if (type.includes('array') && text.includes(',')) {
    return text.split(',').map((part) => readMember({ writing, schema }, part.trim()))
  }
  const takesNumber = type.includes('number') || type.includes('integer')
  return isNumber && takesNumber ? Number(text) : text
}

/** `Name: value` on a line each; a line without a colon stays, to be refused. */
function readPairs(text: string): unknown {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.some((line) => !line.includes(':'))) return text
  const pairs = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
  })
  return Object.fromEntries(pairs)
}

/** A value as the text that `readMember` reads. */
export function writeMember({ writing }: Pick<Member, 'writing'>, value: unknown): string {
  if (value === undefined) return ''
  if (Array.isArray(value)) return value.join(writing === 'lines' ? '\n' : ', ')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${one}`)
    .join('\n')
}
