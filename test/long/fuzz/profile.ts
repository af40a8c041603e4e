import type fc from 'fast-check'
import type { Route } from '../../../kernel/http/router.ts'
import type { Known } from './values.ts'
import type { RouteTable } from './routes.ts'
import type { WireAnswer, WireRequest } from './wire.ts'

/** Headers that say who asks. */
export type Caller = (request: WireRequest) => readonly (readonly [string, string])[]

/** What a fuzz has to know of a service that its table of routes does not say. */
export type FuzzProfile = {
  readonly base: string
  readonly table: RouteTable
  /**
   * Right values by the name of a member, a field, a parameter of the query or of the path; of a path also
   * as `providers.name` for what stands behind `/providers`.
   */
  readonly known: Known
  /** The fields of forms by route (`POST /providers`); a form's route without them has none. */
  readonly forms: Readonly<Record<string, readonly string[]>>
  /** Parameters of the query that a route needs and no schema names, by route. */
  readonly needs: Readonly<Record<string, readonly string[]>>
  /** Parameters of the query that are none of an operation's. */
  readonly query: readonly string[]
  /** Bodies of routes that have neither a schema nor a form, by route. */
  readonly bodies: Readonly<Record<string, fc.Arbitrary<string | Buffer>>>
  /** By name; the first is who may do most. */
  readonly callers: Readonly<Record<string, Caller>>
  /** Who may do most on a route, when that is not the first. */
  readonly best: (route: Route) => string | undefined
  /** What stands for the names in requests: ids and slugs that exist now, by kind. */
  readonly pools: () => Readonly<Record<string, readonly string[]>>
  /** Makes anew what random calls have removed, and reads what there is. */
  readonly refresh: () => Promise<void>
  /** What is wrong with the body of a refusal; undefined when it is as the service's contract has it. */
  readonly refusalFault: (answer: WireAnswer, request: WireRequest) => string | undefined
  /** Answers of status 500 and above that are documented, with the reason; none is without. */
  readonly mayFail: readonly {
    readonly status: number
    readonly route: string
    readonly why: string
  }[]
  /** Log messages of level `warn` that random requests may lead to, with the reason. */
  readonly mayWarn: Readonly<Record<string, string>>
  /** What no answer may hold. */
  readonly secrets: readonly string[]
}

/** A route as people name it. */
export function nameOf({ method, path }: Pick<Route, 'method' | 'path'>): string {
  return `${method} ${path}`
}
