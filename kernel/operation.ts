import type { TObject, TSchema } from 'typebox'
import type { Route } from './http/router.ts'

/** A reply as the documentation of an API shows it; without a schema it has no body. */
export interface ReplyDescription {
  readonly description: string
  readonly schema?: TSchema
  /** Media type of the body; `application/json` when absent. */
  readonly type?: string
  /** Headers that the reply has beside the usual ones. */
  readonly headers?: TObject
}

/**
 * A route of an API with its description, which becomes OpenAPI. Its schemas don't check requests by
 * themselves: the handler reads them, with refusals in the words of its contract.
 */
export interface Operation extends Route {
  /** `operationId`: unique in its API, such as `createLink`. */
  readonly id: string
  readonly summary: string
  /** What the summary leaves out. */
  readonly description?: string
  /** The group that documentation shows it in. */
  readonly tag: string
  /** False for what anybody may call. */
  readonly needsToken: boolean
  /** A schema for each parameter in the path; a string when it has none. */
  readonly params?: Readonly<Record<string, TSchema>>
  readonly query?: TObject
  /** Headers that the handler reads. */
  readonly headers?: TObject
  readonly body?: TSchema
  /** Media types of the body; `application/json` when absent. */
  readonly bodyTypes?: readonly string[]
  /** Success replies by status. */
  readonly replies: Readonly<Record<number, ReplyDescription>>
  /** Statuses of the refusals that it may answer; one that `replies` describes is not repeated. */
  readonly refusals: readonly number[]
}

/** What the document of an API says beside its operations. */
export interface ApiDescription {
  readonly title: string
  readonly version: string
  readonly description: string
  /** Addresses of the service; the first is the public one. */
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  /** Every group with what it is about, in the order of the document. */
  readonly tags: Readonly<Record<string, string>>
  readonly operations: readonly Operation[]
  /** Schemas with a name: wherever an equal one stands, the document refers to it. */
  readonly schemas: Readonly<Record<string, TSchema>>
  /** The body of each refusal, by its status. */
  readonly refusals: Readonly<Record<number, ReplyDescription>>
  /** Where a caller gets the bearer token that operations need; absent when none does. */
  readonly tokens?: string
}
