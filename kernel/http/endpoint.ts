import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import { Fault, notFound } from '../fault.ts'
import type { Operation } from '../openapi.ts'
import { validate, validateTexts } from '../validate.ts'
import { queryOf, type Context } from './context.ts'
import { readForm, readJson, readOptionalForm } from './read-body.ts'
import { jsonReply, type Reply, type ReplyHeaders } from './reply.ts'
import type { Route } from './router.ts'
import {
  audienceOf,
  formReply,
  pageReply,
  refusedReply,
  type Audience,
  type Done,
  type FormState,
  type Typed,
  type View,
} from './view.ts'

/** Who may call an endpoint. */
export interface Access<App, Caller> {
  /** Where the request may come from: see `kernel/net/guard.ts`. */
  readonly guard: Route['access']
  /** Whether it takes an API token, for the API's document. */
  readonly needsToken: boolean
  /** The caller; throws a Fault for a stranger. */
  identify(app: App, context: Context): Caller | Promise<Caller>
  /** Throws a Fault where this caller may not. */
  allow?(caller: Caller): void
}

/** Everybody whom the listener's guard lets in, where a service has no sign-in. */
export const anyone: Access<unknown, undefined> = {
  guard: 'guarded',
  needsToken: false,
  identify: () => undefined,
}

/** A request that may be answered: who calls, and what was sent, validated. */
export interface Call<
  App,
  Caller,
  Params = unknown,
  Query = unknown,
  Found = unknown,
  Body = unknown,
> {
  readonly app: App
  readonly caller: Caller
  readonly params: Params
  readonly query: Query
  /** What the endpoint's `find` gave. */
  readonly found: Found
  readonly body: Body
  readonly now: Date
  readonly context: Context
}

/** What every endpoint declares. Refusals come in the order of the members of `Call`. */
interface Declaration<App, Caller, P extends TProperties, Q extends TObject, Found> {
  /** `:name` stands for one segment, which `params` describes. */
  readonly path: string
  readonly access: Access<App, Caller>
  readonly params?: P
  readonly query?: Q
  /** Looks for what the call is about before the body is read, and throws 404 or 403. */
  readonly find?: (call: Call<App, Caller, Static<TObject<P>>, Static<Q>>) => Promise<Found>
}

/** A value whose lists may be read-only, such as the rows of a query. */
type Unchanging<T> = T extends readonly (infer Item)[]
  ? readonly Unchanging<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Unchanging<T[Name]> }
    : T

/** An endpoint of the JSON API; its declaration becomes OpenAPI. */
interface ApiEndpoint<
  App,
  Caller,
  P extends TProperties,
  Q extends TObject,
  Found,
  B extends TObject,
  R extends TSchema,
> extends Declaration<App, Caller, P, Q, Found> {
  readonly method: Route['method']
  /** `operationId`, such as `createLink`. */
  readonly id: string
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** Request headers that `answer` reads. */
  readonly headers?: TObject
  readonly body?: B
  /** Status 200 with a schema, and 204 without one, unless it says another. */
  readonly returns: {
    readonly status?: number
    readonly description: string
    readonly schema?: R
    /** Headers of the reply beside the usual ones: described, and made of the value. */
    readonly headers?: TObject
    readonly headersOf?: (value: Static<R>) => ReplyHeaders
  }
  /** Statuses of refusals beside those that the rest of the declaration implies. */
  readonly refuses?: readonly number[]
  readonly answer: (
    call: Call<App, Caller, Static<TObject<P>>, Static<Q>, Found, Static<B>>,
  ) => Unchanging<Static<R>> | void | Promise<Unchanging<Static<R>> | void>
}

/** A form: it answers POST. */
interface FormEndpoint<
  App,
  Caller,
  P extends TProperties,
  Q extends TObject,
  Found,
  B extends TObject,
> extends Declaration<App, Caller, P, Q, Found> {
  /** Its fields; without any the body is not read. */
  readonly body?: B
  /** Largest body in bytes, where it is not the usual one. */
  readonly limit?: number
  readonly answer: (
    call: Call<App, Caller, Static<TObject<P>>, Static<Q>, Found, Static<B>>,
  ) => View | Done | Promise<View | Done>
  /** Shows the form again with what was typed, to people; programs get the fault. */
  readonly refused?: (
    call: Call<App, Caller, Static<TObject<P>>, Static<Q>, Found>,
    form: { readonly schema: B; readonly typed: Typed; readonly fault: Fault },
  ) => View | Promise<View>
}

/** An endpoint, to be mounted on a running service. */
export interface Endpoint<App> {
  readonly route: (app: App) => Route
  /** The API's description of it; pages and forms have none. */
  readonly operation?: Omit<Operation, 'handle'>
}

/** How a service reads and refuses requests. */
interface ServiceRules<Viewer> {
  /** Largest JSON body, in bytes. */
  readonly bodyLimit: number
  /** Statuses that every endpoint of the API may answer. */
  readonly alwaysRefuses: readonly number[]
  /** A fault in the shape of the contract; the viewer is the caller, once known. */
  readonly faultReply: (fault: Fault, context: Context, viewer: Viewer | undefined) => Reply
  /** Who reads the reply to a form, where the header Accept does not tell it. */
  readonly formAudience?: (context: Context) => Audience
  /** The fault of wrong form fields, where it is not a 400. */
  readonly wrongFields?: (fault: Fault) => Fault
}

/** Statuses after which people see the form again to correct it; so does any fault of a field. */
const MENDABLE: ReadonlySet<number> = new Set([400, 409, 412, 422])

/** The three kinds of endpoints of a service: `api`, `page`, `form`. */
export function endpointsOf<App, Viewer>(rules: ServiceRules<Viewer>) {
  const { formAudience = audienceOf, wrongFields = (fault) => fault } = rules

  /** Runs access, params, query, `find` and the answer. Here a thrown Fault becomes a reply. */
  function routeOf<C extends Viewer, P extends TProperties, Q extends TObject, F>(
    method: Route['method'],
    declaration: Declaration<App, C, P, Q, F> & { readonly body?: TSchema },
    kind: 'api' | 'page',
    answer: (call: Call<App, C, Static<TObject<P>>, Static<Q>, F>) => Promise<Reply>,
  ): (app: App) => Route {
    const { path, access, params, query, body, find } = declaration
    const paramsSchema = Type.Object(params ?? ({} as P))
    async function handle(app: App, context: Context): Promise<Reply> {
      let caller: C | undefined
      try {
        caller = await access.identify(app, context)
        access.allow?.(caller)
        const call = {
          app,
          caller,
          params: readParams(paramsSchema, kind, context),
          query: readQuery(query, context),
          found: undefined,
          body: undefined,
          now: context.receivedAt,
          context,
        }
        return await answer({ ...call, found: (await find?.(call)) as F })
      } catch (error) {
        if (error instanceof Fault) return rules.faultReply(error, context, caller)
        throw error
      }
    }
    return (app) => ({
      method,
      path,
      access: access.guard,
      ...(params && { params }),
      ...(query && { query }),
      ...(body && { body }),
      handle: (context) => handle(app, context),
    })
  }

  return {
    api<
      C extends Viewer,
      P extends TProperties,
      Q extends TObject,
      F,
      B extends TObject,
      R extends TSchema,
    >(endpoint: ApiEndpoint<App, C, P, Q, F, B, R>): Endpoint<App> {
      const { body, returns, method } = endpoint
      const { status = returns.schema === undefined ? 204 : 200, schema, headersOf } = returns
      const route = routeOf(method, endpoint, 'api', async (call) => {
        const sent = body && validate(body, await readJson(call.context, rules.bodyLimit))
        const value = await endpoint.answer({ ...call, body: sent as Static<B> })
        if (schema !== undefined) return jsonReply(value, status, headersOf?.(value as Static<R>))
        return { status, headers: { 'cache-control': 'no-store' }, body: null }
      })
      return { route, operation: operationOf(endpoint, status, rules.alwaysRefuses) }
    },

    page<C extends Viewer, P extends TProperties, Q extends TObject, F>({
      answer,
      ...declared
    }: Declaration<App, C, P, Q, F> & {
      readonly answer: (
        call: Call<App, C, Static<TObject<P>>, Static<Q>, F>,
      ) => View | Promise<View>
    }): Endpoint<App> {
      const route = routeOf('GET', declared, 'page', async (call) =>
        pageReply(call.context, await answer(call)),
      )
      return { route }
    },

    form<C extends Viewer, P extends TProperties, Q extends TObject, F, B extends TObject>(
      endpoint: FormEndpoint<App, C, P, Q, F, B>,
    ): Endpoint<App> {
      const { body, limit, answer, refused } = endpoint
      const route = routeOf('POST', endpoint, 'page', async (call) => {
        const { context } = call
        const audience = formAudience(context)
        if (body === undefined) {
          return formReply(audience, await answer({ ...call, body: {} as Static<B> }))
        }
        const typed = await readTyped(body, context, limit)
        try {
          const sent = readFields(body, typed, wrongFields)
          return await formReply(audience, await answer({ ...call, body: sent }))
        } catch (error) {
          const isShown = error instanceof Fault && canMend(error)
          if (!isShown || refused === undefined || audience === 'program') throw error
          const view = await refused(call, { schema: body, typed, fault: error })
          return refusedReply(audience, view, error)
        }
      })
      return { route }
    },
  }
}

function canMend({ status, field }: Fault): boolean {
  return MENDABLE.has(status) || field !== undefined
}

/** The routes of pages and forms of a running service. */
export function mountPages<App>(endpoints: readonly Endpoint<App>[], app: App): readonly Route[] {
  const pages = endpoints.filter(({ operation }) => operation === undefined)
  return pages.map(({ route }) => route(app))
}

/** The operations of a running service's API, each of which is its route as well. */
export function mountApi<App>(endpoints: readonly Endpoint<App>[], app: App): readonly Operation[] {
  return endpoints.flatMap(({ operation, route }) =>
    operation === undefined ? [] : [{ ...operation, handle: route(app).handle }],
  )
}

/** A form whose first values are those that the schema gives. */
export function newForm(schema: TObject, typed: Typed = {}): FormState {
  return { schema, typed }
}

/** The parameters of a path. A wrong one is an error of the API; a page answers 404. */
function readParams<S extends TObject>(
  schema: S,
  kind: 'api' | 'page',
  { params }: Context,
): Static<S> {
  try {
    return validateTexts(schema, (name) => params[name])
  } catch (error) {
    throw kind === 'page' && error instanceof Fault ? notFound('nothing has this id') : error
  }
}

function readQuery<Q extends TObject>(query: Q | undefined, context: Context): Static<Q> {
  if (query === undefined) return {} as Static<Q>
  const sent = queryOf(context)
  return validateTexts(query, (name) => sent.get(name))
}

/** The fields of a form as typed. A browser does not send a box that is not ticked. */
async function readTyped(body: TObject, context: Context, limit?: number): Promise<Typed> {
  const read = Object.keys(body.required ?? []).length === 0 ? readOptionalForm : readForm
  const boxes = Object.entries(body.properties).filter(([, schema]) => Type.IsBoolean(schema))
  const unticked = Object.fromEntries(boxes.map(([name]) => [name, 'false']))
  return { ...unticked, ...(await read(context, limit)) }
}

function readFields<B extends TObject>(
  body: B,
  typed: Typed,
  wrongFields: (fault: Fault) => Fault,
): Static<B> {
  try {
    return validateTexts(body, (name) => typed[name])
  } catch (error) {
    throw error instanceof Fault ? wrongFields(error) : error
  }
}

/** What the API's document says of an endpoint. */
function operationOf<
  App,
  C,
  P extends TProperties,
  Q extends TObject,
  F,
  B extends TObject,
  R extends TSchema,
>(
  endpoint: ApiEndpoint<App, C, P, Q, F, B, R>,
  status: number,
  alwaysRefuses: readonly number[],
): Omit<Operation, 'handle'> {
  const { access, answer: _answer, find: _find, returns, refuses = [], ...described } = endpoint
  const { params, query, body } = described
  const { status: _status, headersOf: _headersOf, ...reply } = returns
  const refusals = [
    ...(access.needsToken ? [401, 403] : []),
    ...(params === undefined ? [] : [400, 404]),
    ...(query === undefined ? [] : [400]),
    ...(body === undefined ? [] : [400, 413, 415]),
    ...refuses,
    ...alwaysRefuses,
  ]
  const { guard, needsToken } = access
  return { ...described, access: guard, needsToken, replies: { [status]: reply }, refusals }
}
