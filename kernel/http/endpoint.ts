import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import { Fault, notFound } from '../fault.ts'
import type { Html } from '../html.ts'
import type { Actor } from '../actor.ts'
import type { Operation } from '../openapi.ts'
import type { Context } from './context.ts'
import { operationOf, type Notes, type Returns } from './notes.ts'
import { jsonReply, type Reply } from './reply.ts'
import type { Answer, Route } from './router.ts'
import { readObject, readQuery, readTexts, readTyped } from './sent.ts'
import {
  audienceOf,
  formReply,
  pageReply,
  refusedReply,
  type Audience,
  type Done,
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

/** Everybody that the listener's guard lets in; for services without a sign-in. */
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

/** Where an endpoint is, and who may use it. */
interface Place<App, Caller> {
  /** `:name` stands for one segment, which `params` describes. */
  path: string
  /** The service's usual one where it is not given. */
  access?: Access<App, Caller>
}

/** What every endpoint declares. Refusals come in the order of the members of `Call`. */
interface Declaration<
  App,
  Caller,
  P extends TProperties,
  Q extends TObject,
  Found,
  B extends TObject,
  Value,
> extends Place<App, Caller> {
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
  ): Value | Promise<Value>
}

/** A value whose lists may be read-only, such as the rows of a query. */
type Unchanging<T> = T extends readonly (infer Item)[]
  ? readonly Unchanging<Item>[]
  : T extends object
    ? { [Name in keyof T]: Unchanging<T[Name]> }
    : T

/** What an endpoint of the JSON API declares beside the rest; the whole becomes OpenAPI. */
interface ApiNotes<R extends TSchema> extends Notes {
  method: Route['method']
  returns: Returns<R>
}

/** What an endpoint declares that answers bytes, a stream or a WebSocket, and reads its own body. */
interface RawNotes {
  /** GET where it is not given. */
  method?: Route['method']
  webSocketOf?: Route['webSocketOf']
  /** What the API's document says of it, if it is there. */
  notes?: Notes & Pick<Operation, 'replies' | 'bodyTypes' | 'body'>
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

/** A change that people make by a form and programs by the API. What both share stands once. */
interface Action<
  App,
  C,
  P extends TProperties,
  Q extends TObject,
  F,
  B extends TObject,
  Fields extends TObject,
  Result,
  R extends TSchema,
> extends Pick<Declaration<App, C, P, Q, F, B, unknown>, 'params' | 'query' | 'find' | 'body'> {
  /** Makes the change, and gives what the API answers. */
  act(call: ActionCall<App, C, P, Q, F, B>): Promise<Result>
  api: Place<App, C> & ApiNotes<R>
  form: Place<App, C> &
    FormNotes<Call<App, C, Static<TObject<P>>, Static<Q>, F>, Fields> & {
      /** The fields of the form, where it has more or others than the body of the API. */
      body?: Fields
      /** Makes the body of the API from fields that differ; throws what people must correct. */
      toBody?(call: ActionCall<App, C, P, Q, F, Fields>): Static<B> | Promise<Static<B>>
      /** What people see after the change. */
      answer(
        call: ActionCall<App, C, P, Q, F, Fields>,
        result: Result,
      ): View | Done | Promise<View | Done>
    }
}

type ActionCall<App, C, P extends TProperties, Q extends TObject, F, B extends TObject> = Call<
  App,
  C,
  Static<TObject<P>>,
  Static<Q>,
  F,
  Static<B>
>

/** An endpoint, to be mounted on a running service. */
export interface Endpoint<App> {
  route: (app: App) => Route
  /** The description in the API's document; pages and forms do not have one. */
  operation?: Omit<Operation, 'handle'>
}

/** How a service reads and refuses requests. */
interface ServiceRules<App, Viewer> {
  /**
   * The default access of an endpoint. Without it, every endpoint must name its own, or the program
   * does not start.
   */
  access?: Access<App, Viewer>
  /** The default access of a page, if it differs. */
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
const FIXABLE: ReadonlySet<number> = new Set([400, 409, 412, 422])

/**
 * The kinds of endpoints of a service: `api` answers JSON, `page` and `form` HTML, `raw` anything
 * else. `action` is a form and an endpoint of the API that make the same change.
 */
export function endpointsOf<App, Viewer>(rules: ServiceRules<App, Viewer>) {
  const api = apiOf(rules)
  const form = formOf(rules)
  return { api, page: pageOf(rules), form, raw: rawOf(rules), action: actionOf(api, form) }
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
    const route = routeOf(rules, method, endpoint, unchanged, async (call) => {
      const sent = body && (await readObject(body, call.context, rules))
      const value = await endpoint.answer({ ...call, body: sent as Static<B> })
      if (schema !== undefined) return jsonReply(value, status, headersOf?.(value as Static<R>))
      return { status, headers: { 'cache-control': 'no-store' }, body: null }
    })
    const access = (endpoint.access ?? rules.access) as Access<App, C>
    const replies = { [status]: returns }
    return { route, operation: operationOf({ ...endpoint, replies }, { ...rules, ...access }) }
  }
}

function rawOf<App, Viewer>(rules: ServiceRules<App, Viewer>) {
  return <C extends Viewer, P extends TProperties, Q extends TObject, F>(
    endpoint: Omit<Declaration<App, C, P, Q, F, TObject, Answer>, 'body'> & RawNotes,
  ): Endpoint<App> => {
    const { method = 'GET', notes, webSocketOf } = endpoint
    const wrongParams = notes === undefined ? unknownPage : unchanged
    const answered = routeOf(rules, method, endpoint, wrongParams, endpoint.answer)
    const route = (app: App) => ({ ...answered(app), ...(webSocketOf && { webSocketOf }) })
    if (notes === undefined) return { route }
    const access = (endpoint.access ?? rules.access) as Access<App, C>
    const operation = operationOf({ ...endpoint, ...notes, method }, { ...rules, ...access })
    return { route, operation }
  }
}

function actionOf<App, Viewer>(
  api: ReturnType<typeof apiOf<App, Viewer>>,
  form: ReturnType<typeof formOf<App, Viewer>>,
) {
  return <
    C extends Viewer,
    P extends TProperties,
    Q extends TObject,
    F,
    B extends TObject,
    Result extends Unchanging<Static<R>> | void,
    R extends TSchema,
    Fields extends TObject = B,
  >(
    action: Action<App, C, P, Q, F, B, Fields, Result, R>,
  ): readonly Endpoint<App>[] => {
    const { act, api: forPrograms, form: forPeople, body, ...shared } = action
    const { toBody = (call) => call.body as Static<B>, answer } = forPeople
    const fields = (forPeople.body ?? body) as Fields | undefined
    return [
      api({ ...shared, ...forPrograms, ...(body && { body }), answer: act }),
      form({
        ...{ ...shared, ...forPeople, ...(fields && { body: fields }) },
        answer: async (call) => answer(call, await act({ ...call, body: await toBody(call) })),
      }),
    ]
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
  const { formAudience = audienceOf, wrongFields = unchanged } = rules
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
        if (refused === undefined || audience === 'program' || !isFixable(error)) throw error
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
  answer: (
    call: Call<App, C, Static<TObject<P>>, Static<Q>, F, Static<TObject>>,
  ) => Answer | Promise<Answer>,
): (app: App) => Route {
  const { access = rules.access as Access<App, C>, path, params, query, body, find } = declaration
  const paramsSchema = Type.Object(params ?? ({} as P))
  async function handle(app: App, context: Context): Promise<Answer> {
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

function isFixable(error: unknown): error is Fault {
  return error instanceof Fault && (FIXABLE.has(error.status) || error.field !== undefined)
}

/** The routes of pages and forms of a running service. */
export function mountPages<App>(endpoints: readonly Endpoint<App>[], app: App): readonly Route[] {
  return endpoints.flatMap(({ operation, route }) => (operation === undefined ? route(app) : []))
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

const NOTHING: Static<TObject> = {}

const unchanged = (fault: Fault): Fault => fault

/** A wrong parameter of a path is an error of the API; a page answers 404. */
const unknownPage = (fault: Fault): Fault =>
  fault.status === 404 ? fault : notFound('nothing has this id')
