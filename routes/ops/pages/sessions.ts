import { eventQueries } from '../../../db/ops/events.ts'
import { sessionQueries as q, type FoundSession } from '../../../db/ops/sessions.ts'
import {
  headFragment,
  sessionPage,
  type HeadView,
  type StopView,
} from '../../../html/ops/session.ts'
import { sessionsPage } from '../../../html/ops/sessions.ts'
import { queryOf, wantsFragment } from '../../../kernel/http/context.ts'
import { badRequest, notFound } from '../../../kernel/fault.ts'
import type { Html } from '../../../kernel/html.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { readOptionalForm } from '../../form.ts'
import { sentence } from '../../page-answers.ts'
import { readList } from '../api/operation.ts'
import type { OpsApp } from '../endpoint.ts'
import { doneReply, pageOf, pageRoute, refusedReply, rowIdOf } from './page.ts'

const USUAL = 50
/** Lines of output on a page. */
const LINES = 500
const EVENTS = 100
const AFTER_ALL = 2_147_483_647
const NOT_ASKED: StopView = { refused: null, asked: false }

/** `/sessions`, `/sessions/{id}` and its Stop (decisions.md section 5, Dashboard). */
export function sessionRoutes({ ops }: OpsApp): readonly Route[] {
  const { db, sessions } = ops

  async function headOf(session: FoundSession, stop: StopView): Promise<HeadView> {
    const filter = { level: null, service: null, session: session.id, offset: 0, limit: EVENTS }
    const [events, chain] = await Promise.all([
      eventQueries.listEvents(db, filter),
      q.listChain(db, { id: session.id, limit: 100 }),
    ])
    return { session, stop, events, chain }
  }
  async function page(session: FoundSession, before: number, stop: StopView): Promise<Html> {
    const [head, lines] = await Promise.all([
      headOf(session, stop),
      q.listLinesBefore(db, { session: session.id, before, limit: LINES }),
    ])
    return sessionPage({ ...head, lines: lines.toReversed(), atEnd: before === AFTER_ALL })
  }

  return [
    pageRoute({
      ...{ method: 'GET', path: '/sessions' },
      async answer(context) {
        const asked = readList(context, USUAL)
        if ('status' in asked) return asked
        const found = await q.listSessions(db, { offset: asked.offset, limit: asked.limit + 1 })
        const { rows, older } = pageOf(found, asked, '/sessions')
        return htmlReply(sessionsPage(rows, older))
      },
    }),
    pageRoute({
      ...{ method: 'GET', path: '/sessions/:id' },
      async answer(context) {
        const session = await q.findSession(db, { id: rowIdOf(context) })
        if (session === undefined) return notFound('session not found')
        const headers = { vary: 'HX-Request' }
        if (wantsFragment(context)) {
          return htmlReply(headFragment(await headOf(session, NOT_ASKED)), 200, headers)
        }
        const before = queryOf(context).get('before') ?? String(AFTER_ALL)
        if (!/^\d{1,10}$/.test(before)) {
          return badRequest('before must be the number of a line')
        }
        const number = Math.min(Number(before), AFTER_ALL)
        return htmlReply(await page(session, number, NOT_ASKED), 200, headers)
      },
    }),
    pageRoute({
      ...{ method: 'POST', path: '/sessions/:id/stop' },
      async answer(context) {
        const form = await readOptionalForm(context)
        if ('status' in form) return form
        const id = rowIdOf(context)
        const asked = await sessions.stop(id)
        const session = await q.findSession(db, { id })
        if (session === undefined) return notFound('session not found')
        if (asked) {
          return doneReply(context, `/sessions/${id}`, async () =>
            headFragment(await headOf(session, { refused: null, asked: true })),
          )
        }
        const fault = { status: 409, code: 'CONFLICT', detail: 'the session does not run' }
        const stop = { refused: sentence(fault.detail), asked: false }
        return refusedReply(
          context,
          fault,
          () => page(session, AFTER_ALL, stop),
          async () => headFragment(await headOf(session, stop)),
        )
      },
    }),
  ]
}
