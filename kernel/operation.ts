import type { TObject, TSchema } from 'typebox'
import type { Route } from './router.ts'

/** A reply as the documentation of an API shows it; without a schema it has no body. */
export interface ReplyDescription {
  readonly description: string
  readonly schema?: TSchema
}

/** A route of an API with its description: the same schemas validate requests and become OpenAPI. */
export interface Operation extends Route {
  /** `operationId`: unique in its API, such as `createLink`. */
  readonly id: string
  readonly summary: string
  /** The group that documentation shows it in. */
  readonly tag: string
  /** False for what anybody may call. */
  readonly needsToken: boolean
  /** A schema for each parameter in the path; a string when it has none. */
  readonly params?: Readonly<Record<string, TSchema>>
  readonly query?: TObject
  readonly body?: TSchema
  /** Success replies by status. */
  readonly replies: Readonly<Record<number, ReplyDescription>>
  /** Statuses of the refusals that it may answer. */
  readonly refusals: readonly number[]
}
