import * as Type from '../schema.ts'
import type { Static, TObject, TSchema } from '../schema.ts'
import type { Operation } from '../openapi.ts'
import { isStrict } from '../validate.ts'
import type { ReplyHeaders } from './reply.ts'

/** What the API's document says of an endpoint beside the rest of its declaration. */
export interface Notes {
  /** `operationId`, such as `createLink`. */
  id: string
  tag: string
  summary: string
  description?: string
  /** Request headers that `answer` reads. */
  headers?: TObject
  /** Statuses of refusals beside those that the rest of the declaration implies. */
  refuses?: readonly number[]
}

/** The success reply of an endpoint that answers JSON. */
export interface Returns<R extends TSchema> {
  /** 200 with a schema, and 204 without one, unless it says another. */
  status?: number
  description: string
  schema?: R
  /** Headers of the reply beside the usual ones: described, and made of the value. */
  headers?: TObject
  headersOf?(value: Static<R>): ReplyHeaders
}

/** What of a declaration the document shows. */
type Shown = Notes &
  Pick<Operation, 'path' | 'method' | 'params' | 'query' | 'body' | 'bodyTypes' | 'replies'>

/** Who may call it, and what every endpoint of the service may answer. */
interface Usual {
  guard: Operation['access']
  needsToken: Operation['needsToken']
  /** Refuses some callers, where it is there. */
  allow?: unknown
  alwaysRefuses: readonly number[]
  /** Status of a member that a JSON body does not take. */
  unknownMember?: number
}

/** The description of an endpoint; its refusals follow from what it declares. */
export function operationOf(
  endpoint: Shown,
  { guard, needsToken, allow, alwaysRefuses, unknownMember = 400 }: Usual,
): Omit<Operation, 'handle'> {
  const { params, query, body, bodyTypes, refuses = [] } = endpoint
  const strict = body !== undefined && isStrict(body)
  const refusals = [
    ...(needsToken === false ? [] : [401]),
    ...(guard === 'open' && allow === undefined ? [] : [403]),
    ...(params === undefined ? [] : [400, 404]),
    ...(query === undefined ? [] : [400]),
    ...(body === undefined ? [] : [400, 413]),
    ...(body === undefined || bodyTypes?.includes('*/*') ? [] : [415]),
    ...(strict ? [unknownMember] : []),
    ...refuses,
    ...alwaysRefuses,
  ]
  return { ...endpoint, access: guard, needsToken, refusals }
}

/**
 * A body that replaces a thing, as the document shows it. A strict one also takes the other members
 * of the answer, as they are; any other body takes further members anyway.
 */
export function replacingBody(body: TObject, answer: TSchema): TObject {
  if (!isStrict(body) || !Type.IsObject(answer)) return body
  const readOnly = Object.entries<TSchema>(answer.properties).map(
    ([name, schema]) => [name, { ...schema, readOnly: true }] as const,
  )
  return { ...body, properties: { ...Object.fromEntries(readOnly), ...body.properties } }
}
