import type { Static, TObject, TProperties, TSchema } from '../schema.ts'
import { Fault } from '../fault.ts'
import type { Operation } from '../openapi.ts'
import { NOTHING, routeOf, unchanged, unknownPage } from './call.ts'
import type {
  Access,
  Action,
  ApiNotes,
  Call,
  Declaration,
  Endpoint,
  FormNotes,
  RawNotes,
  Replacing,
  ServiceRules,
  Unchanging,
} from './declaration.ts'
import { operationOf, replacingBody } from './notes.ts'
import { ignoredHeader, jsonReply, unlessKnown } from './reply.ts'
import type { Answer, Route } from './router.ts'
import { readObject, readTexts, readTyped } from './sent.ts'
import {
  audienceOf,
  formReply,
  pageReply,
  refusedReply,
  type Done,
  type Frame,
  type View,
} from './view.ts'

/** Everybody that the listener's guard lets in; for services without a sign-in. */
export const anyone: Access<unknown, undefined> = {
  guard: 'guarded',
  needsToken: false,
  identify: () => undefined,
}

/** The same for pages: no page of another site may load them unseen. */
export const visitor: Access<unknown, undefined> = { ...anyone, guard: 'private' }

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
    endpoint: Declaration<App, C, P, Q, F, B, Unchanging<Static<R>> | void> &
      ApiNotes<R> &
      Replacing<Call<App, C, Static<TObject<P>>, Static<Q>, F>, R>,
  ): Endpoint<App> => {
    const { body, returns, method, replaces } = endpoint
    const { status = returns.schema === undefined ? 204 : 200, schema, headersOf } = returns
    const route = routeOf(rules, method, endpoint, unchanged, async (call) => {
      const replaced = replaces && { ...replaces, current: () => replaces.current(call) }
      const read = body && (await readObject(body, call.context, rules, schema, replaced))
      const value = await endpoint.answer({ ...call, body: read?.sent as Static<B> })
      if (schema !== undefined) {
        const ignored = ignoredHeader(read?.ignored ?? [])
        const headers = { ...headersOf?.(value as Static<R>), ...ignored }
        const reply = jsonReply(value, status, headers)
        return method === 'GET' ? unlessKnown(reply, call.context.headers) : reply
      }
      return { status, headers: { 'cache-control': 'no-store' }, body: null }
    })
    const access = (endpoint.access ?? rules.access) as Access<App, C>
    const replies = {
      [status]: returns,
      ...(method === 'GET' &&
        returns.headers !== undefined && {
          304: { description: 'The client has this version', headers: returns.headers },
        }),
    }
    const shown = {
      ...endpoint,
      ...(body && replaces && schema && { body: replacingBody(body, schema) }),
      replies,
    }
    return { route, operation: operationOf(shown, { ...rules, ...access }) }
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
        ...shared,
        ...forPeople,
        ...(fields && { body: fields }),
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
