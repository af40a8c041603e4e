import Type from 'typebox'
import { alertQueries as q, type Alert } from '../../db/ops/alerts.ts'
import { nullable } from '../../db/sql-file.ts'
import { alertPage, alertsView, MAX_CHARACTERS } from '../../html/ops/alerts.ts'
import { MAX_COUNT } from '../../html/parts.ts'
import { found, badRequest, Fault } from '../../kernel/fault.ts'
import { readBytes } from '../../kernel/http/read-body.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import { investigationPrompt } from '../../services/ops/alerts/brief.ts'
import { isBlank, type DeliveryResult } from '../../services/ops/alerts/receive.ts'
import { keyHolder } from './access.ts'
import { started } from './faults.ts'
import { form, idOf, page, raw, type OpsApp } from './kit.ts'
import { paging, readPage } from './paging.ts'

const PATH = '/alerts'
const params = { id: idOf('alert') }
const AlertQuery = Type.Object(paging(50))
const WEBHOOK_LIMIT = 1024 * 1024

/** What became of a delivery: a session, or one runs already. */
export const AlertReceipt = Type.Object({
  session_id: nullable(Type.Integer()),
  status: Type.Enum(['triggered', 'acknowledged']),
  tier: Type.Optional(Type.Integer({ description: 'Of the session, when there is one' })),
  message: Type.Optional(Type.String({ description: 'Why there is no session' })),
})

/** The body of 502 and 503. */
export const AlertProblem = Type.Object({
  error: Type.String(),
  message: Type.Optional(Type.String({ description: 'What is to be done about it' })),
})

const access = keyHolder({
  notConfigured: new Fault(503, 'NOT_CONFIGURED', 'the webhook is not configured', {
    advice: 'set OPS_CHAT_API_KEY, and send it as Authorization: Bearer KEY',
  }),
  wrongKey: new Fault(401, 'UNAUTHORIZED', 'unauthorized', {
    headers: { 'www-authenticate': 'Bearer' },
  }),
})

/** The webhook, what it received, and Investigate (decisions.md section 5, Webhook). */
export const alertEndpoints = [
  page({
    path: PATH,
    query: AlertQuery,
    async answer({ app: { ops }, query }) {
      const [listed, { count }] = await Promise.all([
        // A row shows no payload.
        readPage(PATH, query, (asked) => q.listAlerts(ops.db, { ...asked, characters: 0 })),
        q.countAlerts(ops.db, { limit: MAX_COUNT + 1 }),
      ])
      return alertsView({ ...listed, count })
    },
  }),

  page({
    path: `${PATH}/:id`,
    params,
    query: AlertQuery,
    async answer({ app, params: { id }, query }) {
      const alert = await findAlert(app, id)
      const texts = await readPage(`${PATH}/${id}`, query, (asked) =>
        q.listAlertTexts(app.ops.db, { ...asked, alert: id, characters: MAX_CHARACTERS }),
      )
      return { page: () => alertPage(alert, texts) }
    },
  }),

  form({
    path: `${PATH}/:id/investigate`,
    params,
    find: ({ app, params }) => findAlert(app, params.id),
    body: Type.Object({}),
    async answer({ app: { ops }, actor, found: alert }) {
      const prompt = investigationPrompt(alert, ops.random)
      const request = { tier: 1, trigger: 'manual', prompt, alert: alert.id, actor } as const
      const { id } = started(await ops.sessions.start(request))
      return { location: `/sessions/${id}` }
    },
  }),

  raw({
    method: 'POST',
    path: '/api/v1/webhook',
    access,
    notes: {
      id: 'receiveAlert',
      tag: 'Alerts',
      summary: 'Take an alert of any monitoring tool and start a session that looks into it.',
      description:
        'Any body that is not blank. The integer `tier` at the top of a JSON object is the tier ' +
        'to start at, clamped to the maximum; it is 1 otherwise. While a session runs, the alert ' +
        'is kept and nothing is started.',
      body: Type.Unknown({
        description: 'Whatever the tool sends',
        examples: [{ service: 'shop', problem: 'answers 502 since 10:40', tier: 2 }],
      }),
      bodyTypes: ['application/json', 'text/plain', 'application/x-www-form-urlencoded', '*/*'],
      replies: {
        202: { description: 'The alert is kept', schema: AlertReceipt },
        502: {
          description: 'The alert is kept; no model made a brief of it',
          schema: AlertProblem,
        },
        503: {
          description:
            'OPS_CHAT_API_KEY is not set, the database is out of reach, or the server stops',
          schema: AlertProblem,
        },
      },
    },
    async answer({ app: { ops }, now, context }) {
      const bytes = await readBytes(context, undefined, WEBHOOK_LIMIT)
      if (isBlank(bytes)) throw badRequest('the body is blank')
      return jsonReply(receiptOf(await ops.alerts.receive(bytes, now, context.gone())), 202)
    },
  }),
]

async function findAlert({ ops }: OpsApp, id: number): Promise<Alert> {
  return found(await q.findAlert(ops.db, { id }), 'alert')
}

/** What became of a delivery; throws the fault of one that started nothing and should have. */
function receiptOf(result: DeliveryResult): Type.Static<typeof AlertReceipt> {
  if (result.kind === 'failed') {
    throw new Fault(502, 'SYNTHESIS_FAILED', 'synthesis failed', { advice: result.problem })
  }
  if (result.kind === 'stopping') {
    throw new Fault(503, 'UNAVAILABLE', 'the server is stopping', {
      advice: 'the alert is kept, and nothing was started: send it again',
      headers: { 'retry-after': '5' },
    })
  }
  if (result.kind === 'triggered') {
    const { session, tier } = result
    return { session_id: session, status: 'triggered', tier }
  }
  // Not the whole reason: it names who paused them.
  const isPaused = result.problem !== undefined
  const why = isPaused ? 'investigations are paused' : 'a session is running or has just run'
  const message = `${why}; the alert is kept, and nothing was started`
  return { session_id: null, status: 'acknowledged', message }
}
