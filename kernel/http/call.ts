import * as Type from '../schema.ts'
import type { Static, TObject, TProperties } from '../schema.ts'
import { Fault, notFound } from '../fault.ts'
import type { Context } from './context.ts'
import type { Access, Call, Declaration, ServiceRules } from './declaration.ts'
import type { Answer, Route } from './router.ts'
import { readQuery, readTexts } from './sent.ts'

/** A request without a body. */
export const NOTHING: Static<TObject> = {}

/** Runs access, params, query, `find` and the answer. Here a thrown Fault becomes a reply. */
export function routeOf<
  App,
  Viewer,
  C extends Viewer,
  P extends TProperties,
  Q extends TObject,
  F,
>(
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
    method,
    path,
    access: access.guard,
    ...(params && { params }),
    ...(query && { query }),
    ...(body && { body }),
    handle: (context) => handle(app, context),
  })
}

export const unchanged = (fault: Fault): Fault => fault

/** A wrong parameter of a path is an error of the API; a page answers 404. */
export const unknownPage = (fault: Fault): Fault =>
  fault.status === 404 ? fault : notFound('nothing has this id')
