import type { Static, TObject, TProperties, TSchema } from '../schema.ts'
import type { Fault } from '../fault.ts'
import type { Html } from '../html.ts'
import type { Actor } from '../actor.ts'
import type { Operation } from '../openapi.ts'
import type { Context } from './context.ts'
import type { Notes, Returns } from './notes.ts'
import type { Reply } from './reply.ts'
import type { Route } from './router.ts'
import type { Audience, Done, Page, Typed, View } from './view.ts'

// What an endpoint declares, and the call that its handler gets. These are types alone: what is
// checked, and in which order, stands in `call.ts`.

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
export interface Place<App, Caller> {
  /** `:name` stands for one segment, which `params` describes. */
  path: string
  /** The service's usual one where it is not given. */
  access?: Access<App, Caller>
}

/** What every endpoint declares. Refusals come in the order of the members of `Call`. */
export interface Declaration<
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
export type Unchanging<T> = T extends readonly (infer Item)[]
  ? readonly Unchanging<Item>[]
  : T extends object
    ? { [Name in keyof T]: Unchanging<T[Name]> }
    : T

/** What an endpoint of the JSON API declares beside the rest; the whole becomes OpenAPI. */
export interface ApiNotes<R extends TSchema> extends Notes {
  method: Route['method']
  returns: Returns<R>
}

/** What an endpoint of the API declares that replaces a thing: what GET gives, it takes. */
export interface Replacing<ThingCall, R extends TSchema> {
  replaces?: {
    /**
     * The thing as it is now, as GET answers it. Members of it that the body does not have are
     * read-only: they may come back unchanged, and are refused when they differ.
     */
    current(call: ThingCall): Unchanging<Static<R>> | Promise<Unchanging<Static<R>>>
    /** Those that are ignored when they differ: they change by themselves, or a contract says so. */
    mayDiffer: readonly (keyof NoInfer<Static<R>> & string)[]
  }
}

/** What an endpoint declares that answers bytes, a stream or a WebSocket, and reads its own body. */
export interface RawNotes {
  /** GET where it is not given. */
  method?: Route['method']
  webSocketOf?: Route['webSocketOf']
  /** What the API's document says of it, if it is there. */
  notes?: Notes & Pick<Operation, 'replies' | 'bodyTypes' | 'body'>
}

/** What a form declares beside the rest: it answers POST. */
export interface FormNotes<FormCall, B> {
  /** Largest body in bytes, where it is not the usual one. */
  limit?: number
  /** Shows the form again with what was typed, to people; programs get the fault. */
  refused?: (
    call: FormCall,
    form: { schema: B; typed: Typed; fault: Fault },
  ) => View | Promise<View>
}

/** A change that people make by a form and programs by the API. What both share stands once. */
export interface Action<
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
  api: Place<App, C> & ApiNotes<R> & Replacing<Call<App, C, Static<TObject<P>>, Static<Q>, F>, R>
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

export type ActionCall<
  App,
  C,
  P extends TProperties,
  Q extends TObject,
  F,
  B extends TObject,
> = Call<App, C, Static<TObject<P>>, Static<Q>, F, Static<B>>

/** An endpoint, to be mounted on a running service. */
export interface Endpoint<App> {
  route: (app: App) => Route
  /** The description in the API's document; pages and forms do not have one. */
  operation?: Omit<Operation, 'handle'>
}

/** How a service reads and refuses requests. */
export interface ServiceRules<App, Viewer> {
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
