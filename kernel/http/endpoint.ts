import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import { Fault, notFound } from '../fault.ts'
import type { Html } from '../html.ts'
import type { Actor } from '../actor.ts'
import type { Operation } from '../openapi.ts'
import { isStrict, refuseUnknown, validate, validateQuery, validateTexts } from '../validate.ts'
import { isEmptyBody } from './body.ts'
import { queryOf, type Context } from './context.ts'
import { readForm, readJson } from './read-body.ts'
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
  type Frame,
  type Page,
  type Typed,
  type View,
} from './view.ts'

/** Who may call an endpoint. */
export interface Access<App, Caller> {
  /** Where the request may come from: see `kernel/net/guard.ts`. */
  guard: Route['access']
  /** Whether it takes an API token, for the API's document. */
  needsToken: Operation['needsToken']
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

/** The same for pages: no page of another site may load them unseen. */
export const visitor: Access<unknown, undefined> = { ...anyone, guard: 'private' }

/** A request that may be answered: who calls, and what was sent, validated. */
export interface Call<
  App,
  Caller,
  Params = unknown,
  Query = unknown,
  Found = unknown,
  Body = unknown,
> {
  app: App
  caller: Caller
  /** Who it is, for what the caller changes. */
  actor: Actor
  params: Params
  query: Query
  /** What the endpoint's `find` gave. */
  found: Found
  body: Body
  now: Date
  context: Context
}

/** What every endpoint declares. Refusals come in the order of the members of `Call`. */
interface Declaration<
  App,
  Caller,
  P extends TProperties,
  Q extends TObject,
  Found,
  B extends TObject,
  Answer,
> {
  /** `:name` stands for one segment, which `params` describes. */
  path: string
  /** The service's usual one where it is not given. */
  access?: Access<App, Caller>
  params?: P
  query?: Q
  /** Looks for what the call is about before the body is read, and throws 404 or 403. */
  find?(call: Call<App, Caller, Static<TObject<P>>, Static<Q>>): Promise<Found>
  /**
   * The JSON object or the fields of the form; without a schema the body is not read. A JSON object
   * may have further members, unless the schema has `additionalProperties: false`.
   */
  body?: B
  answer(
    call: Call<App, Caller, Static<TObject<P>>, Static<Q>, Found, Static<B>>,
  ): Answer | Promise<Answer>
}

type Described = Omit<
  Declaration<never, unknown, TProperties, TObject, unknown, TObject, unknown>,
  'find' | 'answer'
>

type DescribedRules = Pick<
  ServiceRules<never, unknown>,
  'access' | 'alwaysRefuses' | 'unknownMember'
>

/** A value whose lists may be read-only, such as the rows of a query. */
type Unchanging<T> = T extends readonly (infer Item)[]
  ? readonly Unchanging<Item>[]
  : T extends object
    ? { [Name in keyof T]: Unchanging<T[Name]> }
    : T

/** What an endpoint of the JSON API declares beside the rest; the whole becomes OpenAPI. */
interface ApiNotes<R extends TSchema> {
  method: Route['method']
  /** `operationId`, such as `createLink`. */
  id: string
  tag: string
  summary: string
  description?: string
  /** Request headers that `answer` reads. */
  headers?: TObject
  /** Status 200 with a schema, and 204 without one, unless it says another. */
  returns: {
    status?: number
    description: string
    schema?: R
    /** Headers of the reply beside the usual ones: described, and made of the value. */
    headers?: TObject
    headersOf?(value: Static<R>): ReplyHeaders
  }
  /** Statuses of refusals beside those that the rest of the declaration implies. */
  refuses?: readonly number[]
}

/** What a form declares beside the rest: it answers POST. */
interface FormNotes<FormCall, B> {
  /** Largest body in bytes, where it is not the usual one. */
  limit?: number
  /** Shows the form again with what was typed, to people; programs get the fault. */
  refused?: (
    call: FormCall,
    form: { schema: B; typed: Typed; fault: Fault },
  ) => View | Promise<View>
}

/** An endpoint, to be mounted on a running service. */
export interface Endpoint<App> {
  route: (app: App) => Route
  /** The API's description of it; pages and forms have none. */
  operation?: Omit<Operation, 'handle'>
}

/** How a service reads and refuses requests. */
interface ServiceRules<App, Viewer> {
  /**
   * Who may call an endpoint that does not say it. Without it, the program does not start before
   * each endpoint says it.
   */
  access?: Access<App, Viewer>
  /** The same for pages, where it is another one. */
  pageAccess?: Access<App, Viewer>
  /** Largest JSON body, in bytes. */
  bodyLimit: number
  /** Statuses that every endpoint of the API may answer. */
  alwaysRefuses: readonly number[]
  /** Status of a member that a JSON body does not take, where it is not 400. */
  unknownMember?: number
  /** A fault in the shape of the contract; the viewer is the caller, once known. */
  faultReply: (app: App, fault: Fault, context: Context, viewer: Viewer | undefined) => Reply
  /** Draws a page with what all pages of the service share. */
  frame: (app: App, page: Page, viewer: Viewer | undefined) => Html
  /** Who reads the reply to a form, where the header Accept does not tell it. */
  formAudience?: (context: Context) => Audience
  /** The fault of wrong form fields, where it is not a 400. */
  wrongFields?: (fault: Fault) => Fault
}

/** Statuses after which people see the form again to correct it; so does any fault of a field. */
const MENDABLE: ReadonlySet<number> = new Set([400, 409, 412, 422])

/** The three kinds of endpoints of a service: `api`, `page`, `form`. */
export function endpointsOf<App, Viewer>(rules: ServiceRules<App, Viewer>) {
  return { api: apiOf(rules), page: pageOf(rules), form: formOf(rules) }
}

function apiOf<App, Viewer>(rules: ServiceRules<App, Viewer>) {
  return <
    C extends Viewer,
    P extends TProperties,
    Q extends TObject,
    F,
    B extends TObject,
    R extends TSchema,
  >(
    endpoint: Declaration<App, C, P, Q, F, B, Unchanging<Static<R>> | void> & ApiNotes<R>,
  ): Endpoint<App> => {
    const { body, returns, method } = endpoint
    const { status = returns.schema === undefined ? 204 : 200, schema, headersOf } = returns
    const route = routeOf(rules, method, endpoint, asItIs, async (call) => {
      const sent = body && (await readSent(body, call.context, rules))
      const value = await endpoint.answer({ ...call, body: sent as Static<B> })
      if (schema !== undefined) return jsonReply(value, status, headersOf?.(value as Static<R>))
      return { status, headers: { 'cache-control': 'no-store' }, body: null }
    })
    return { route, operation: operationOf(endpoint, status, rules) }
  }
}

function pageOf<App, Viewer>({ pageAccess, ...others }: ServiceRules<App, Viewer>) {
  const rules = { ...others, ...(pageAccess && { access: pageAccess }) }
  return <C extends Viewer, P extends TProperties, Q extends TObject, F>(
    endpoint: Declaration<App, C, P, Q, F, TObject, View>,
  ): Endpoint<App> => {
    const route = routeOf(rules, 'GET', endpoint, unknownPage, async (call) =>
      pageReply(call.context, await endpoint.answer(call), frameOf(rules, call)),
    )
    return { route }
  }
}

function formOf<App, Viewer>(rules: ServiceRules<App, Viewer>) {
  const { formAudience = audienceOf, wrongFields = asItIs } = rules
  return <C extends Viewer, P extends TProperties, Q extends TObject, F, B extends TObject>(
    endpoint: Declaration<App, C, P, Q, F, B, View | Done> &
      FormNotes<Call<App, C, Static<TObject<P>>, Static<Q>, F>, B>,
  ): Endpoint<App> => {
    const { body, limit, answer, refused } = endpoint
    const route = routeOf(rules, 'POST', endpoint, unknownPage, async (call) => {
      const { context } = call
      const audience = formAudience(context)
      const frame = frameOf(rules, call)
      if (body === undefined) {
        return formReply(audience, await answer({ ...call, body: NOTHING as Static<B> }), frame)
      }
      const typed = await readTyped(body, context, limit)
      try {
        const sent = readTexts(body, (name) => typed[name], wrongFields)
        return await formReply(audience, await answer({ ...call, body: sent }), frame)
      } catch (error) {
        const isShown = error instanceof Fault && canMend(error)
        if (!isShown || refused === undefined || audience === 'program') throw error
        const view = await refused(call, { schema: body, typed, fault: error })
        return refusedReply(audience, view, error, frame)
      }
    })
    return { route }
  }
}

/** Runs access, params, query, `find` and the answer. Here a thrown Fault becomes a reply. */
function routeOf<App, Viewer, C extends Viewer, P extends TProperties, Q extends TObject, F>(
  rules: ServiceRules<App, Viewer>,
  method: Route['method'],
  declaration: Declaration<App, C, P, Q, F, TObject, unknown>,
  wrongParams: (fault: Fault) => Fault,
  answer: (call: Call<App, C, Static<TObject<P>>, Static<Q>, F, NoBody>) => Promise<Reply>,
): (app: App) => Route {
  const { access = rules.access as Access<App, C>, path, params, query, body, find } = declaration
  const paramsSchema = Type.Object(params ?? ({} as P))
  async function handle(app: App, context: Context): Promise<Reply> {
    let caller: C | undefined
    try {
      caller = await access.identify(app, context)
      access.allow?.(caller)
      const call = {
        app,
        caller,
        actor: context.actor,
        params: readTexts(paramsSchema, (name) => context.params[name], wrongParams),
        query: readQuery(query, context),
        found: undefined,
        body: NOTHING,
        now: context.receivedAt,
        context,
      }
      return await answer({ ...call, found: (await find?.(call)) as F })
    } catch (error) {
      if (error instanceof Fault) return rules.faultReply(app, error, context, caller)
      throw error
    }
  }
  return (app) => ({
    ...{ method, path, access: access.guard },
    ...(params && { params }),
    ...(query && { query }),
    ...(body && { body }),
    handle: (context) => handle(app, context),
  })
}

function frameOf<App, Viewer>(
  { frame }: ServiceRules<App, Viewer>,
  { app, caller }: Pick<Call<App, Viewer>, 'app' | 'caller'>,
): Frame {
  return (page) => frame(app, page, caller)
}

function canMend({ status, field }: Fault) {
  return MENDABLE.has(status) || field !== undefined
}

/** The routes of pages and forms of a running service. */
export function mountPages<App>(endpoints: readonly Endpoint<App>[], app: App): readonly Route[] {
  const pages = endpoints.filter(({ operation }) => operation === undefined)
  return pages.map(({ route }) => route(app))
}

/** The operations of a running service's API, each of which is its route as well. */
export function mountApi<App>(
  endpoints: readonly Endpoint<App>[],
  app: App,
): readonly Operation[] {
  return endpoints.flatMap(({ operation, route }) =>
    operation === undefined ? [] : [{ ...operation, handle: route(app).handle }],
  )
}

/** A form whose first values are those that the schema gives. */
export function newForm(schema: TObject, typed: Typed = {}): FormState {
  return { schema, typed }
}

type NoBody = Static<TObject>
const NOTHING: NoBody = {}

const asItIs = (fault: Fault): Fault => fault

/** A wrong parameter of a path is an error of the API; a page answers 404. */
const unknownPage = (): Fault => notFound('nothing has this id')

/** Validates texts of a request; `wrong` makes the fault of those that are not valid. */
function readTexts<S extends TObject>(
  schema: S,
  textOf: (name: string) => string | undefined,
  wrong: (fault: Fault) => Fault,
): Static<S> {
  try {
    return validateTexts(schema, textOf)
  } catch (error) {
    throw error instanceof Fault ? wrong(error) : error
  }
}

function readQuery<Q extends TObject>(query: Q | undefined, context: Context): Static<Q> {
  if (query === undefined) return {} as Static<Q>
  return validateQuery(query, queryOf(context))
}

/** The validated JSON object of a request. */
async function readSent<B extends TObject>(
  body: B,
  context: Context,
  {
    bodyLimit,
    unknownMember = 400,
  }: Pick<ServiceRules<never, unknown>, 'bodyLimit' | 'unknownMember'>,
): Promise<Static<B>> {
  const given = await readJson(context, bodyLimit)
  refuseUnknown(body, given, unknownMember)
  return validate(body, given)
}

/**
 * The fields of a form as typed. A browser does not send a box that is not ticked. Boxes of one
 * name, of which any number may be ticked, are the lines of one text.
 */
async function readTyped(body: TObject, context: Context, limit?: number): Promise<Typed> {
  const properties = Object.entries(body.properties)
  const boxes = properties.filter(([, schema]) => Type.IsBoolean(schema))
  const lists = properties.filter(([, schema]) => Type.IsArray(schema)).map(([name]) => name)
  const unticked = Object.fromEntries(boxes.map(([name]) => [name, 'false']))
  // A post without a body is one without fields, where all of them may be left out.
  const isBare = context.headers['content-type'] === undefined && isEmptyBody(context)
  if (isBare && Object.keys(body.required ?? []).length === 0) return unticked
  return { ...unticked, ...(await readForm(context, limit, lists)) }
}

/** What the API's document says of an endpoint. */
function operationOf(
  endpoint: Described & ApiNotes<TSchema>,
  status: number,
  { access: usual, alwaysRefuses, unknownMember = 400 }: DescribedRules,
): Omit<Operation, 'handle'> {
  const { params, query, body, returns, refuses = [] } = endpoint
  const { guard, needsToken } = (endpoint.access ?? usual) as Access<never, unknown>
  const refusals = [
    ...(needsToken === false ? [] : [401, 403]),
    ...(params === undefined ? [] : [400, 404]),
    ...(query === undefined ? [] : [400]),
    ...(body === undefined ? [] : [400, 413, 415]),
    ...(body !== undefined && isStrict(body) ? [unknownMember] : []),
    ...refuses,
    ...alwaysRefuses,
  ]
  return { ...endpoint, access: guard, needsToken, replies: { [status]: returns }, refusals }
}
