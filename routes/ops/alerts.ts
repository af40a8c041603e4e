import Type from 'typebox'
import { alertQueries as q, type Alert } from '../../db/ops/alerts.ts'
import { nullable } from '../../db/sql-file.ts'
import {
  alertCard,
  alertPage,
  alertsPage,
  MAX_CHARACTERS,
  type AlertsView,
} from '../../html/ops/alerts.ts'
import { found, badRequest, Fault } from '../../kernel/fault.ts'
import type { BodyResult } from '../../kernel/http/body.ts'
import type { Context } from '../../kernel/http/context.ts'
import { bearsKey } from '../../kernel/tokens.ts'
import { jsonReply, type Reply } from '../../kernel/http/reply.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { investigationPrompt } from '../../services/ops/alerts/brief.ts'
import { isBlank, type DeliveryResult } from '../../services/ops/alerts/receive.ts'
import { anyone } from '../../kernel/http/endpoint.ts'
import { form, idOf, page, paging, readPage, type OpsApp, started } from './endpoint.ts'

const PATH = '/alerts'
const params = { id: idOf('alert') }
const AlertQuery = Type.Object(paging(50))
type AlertQuery = Type.Static<typeof AlertQuery>
const WEBHOOK_LIMIT = 1024 * 1024

/** What the webhook received, and Investigate (decisions.md section 5, Webhook). */
export const alertEndpoints = [
  page({
    path: PATH,
    access: anyone,
    query: AlertQuery,
    async answer({ app, query }) {
      return { page: async () => alertsPage(await alertsView(app, query)) }
    },
  }),

  page({
    path: `${PATH}/:id`,
    access: anyone,
    params,
    query: AlertQuery,
    async answer({ app: { ops }, params: { id }, query }) {
      const alert = found(await q.findAlert(ops.db, { id }), 'alert')
      const { rows: texts, older } = await readPage(`${PATH}/${id}`, query, (asked) =>
        q.listAlertTexts(ops.db, { ...asked, alert: id, characters: MAX_CHARACTERS }),
      )
      return { page: () => alertPage(alert, texts, older) }
    },
  }),

  form({
    path: `${PATH}/:id/investigate`,
    access: anyone,
    params,
    find: async ({ app: { ops }, params: { id } }) =>
      found(await q.findAlert(ops.db, { id }), 'alert'),
    body: Type.Object({}),
    async answer({ app: { ops }, found: alert }) {
      const prompt = investigationPrompt(alert, ops.random)
      const session = started(await ops.sessions.start({ tier: 1, trigger: 'manual', prompt }))
      const triggered = { outcome: 'triggered', problem: null } as const
      await q.noteAlert(ops.db, { ...alert, ...triggered, session: session.id })
      const now: Alert = { ...alert, ...triggered, session_id: session.id }
      return {
        location: `/sessions/${session.id}`,
        fragment: () => alertCard({ alert: now }),
      }
    },
    async refused({ app, found: alert }, { fault }) {
      const refused = { id: alert.id, fault }
      return {
        page: async () => alertsPage(await alertsView(app, { limit: 50, offset: 0 }, { refused })),
        fragment: () => alertCard({ alert, fault }),
      }
    },
  }),
]

async function alertsView(
  { ops }: OpsApp,
  query: AlertQuery,
  state: Pick<AlertsView, 'refused'> = {},
): Promise<AlertsView> {
  const { rows: alerts, older } = await readPage(PATH, query, (asked) =>
    q.listAlerts(ops.db, { ...asked, characters: MAX_CHARACTERS }),
  )
  return { alerts, older, ...state }
}

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

/**
 * `POST /api/v1/webhook` (ops.md section 4): refusals come in the order of decisions.md section 5.
 */
export function webhookOperation({ ops, chatKey }: OpsApp): Operation {
  async function handle(context: Context): Promise<Reply> {
    const key = chatKey()
    if (key === undefined) {
      const message = 'set OPS_CHAT_API_KEY, and send it as Authorization: Bearer KEY'
      return problem(503, 'the webhook is not configured', message)
    }
    if (!bearsKey(context.headers, key)) {
      const headers = { 'www-authenticate': 'Bearer' }
      throw new Fault(401, 'UNAUTHORIZED', 'unauthorized', { headers })
    }
    const body = await context.body(WEBHOOK_LIMIT)
    if (!body.ok) return unreadBody(body)
    if (isBlank(body.bytes)) throw badRequest('the body is blank')
    return receipt(await ops.alerts.receive(body.bytes, context.receivedAt, context.gone()))
  }

  return {
    ...{ method: 'POST', path: '/api/v1/webhook', id: 'receiveAlert', tag: 'Alerts' },
    summary: 'Take an alert of any monitoring tool and start a session that looks into it.',
    description:
      'Any body that is not blank. The integer `tier` at the top of a JSON object is the tier to start at, clamped to the maximum; it is 1 otherwise. While a session runs, the alert is kept and nothing is started.',
    access: 'open',
    needsToken: true,
    body: Type.Unknown({
      description: 'Whatever the tool sends',
      examples: [{ service: 'shop', problem: 'answers 502 since 10:40', tier: 2 }],
    }),
    bodyTypes: ['application/json', 'text/plain', 'application/x-www-form-urlencoded', '*/*'],
    replies: {
      202: { description: 'The alert is kept', schema: AlertReceipt },
      502: { description: 'The alert is kept; no model made a brief of it', schema: AlertProblem },
      503: {
        description:
          'OPS_CHAT_API_KEY is not set, the database is out of reach, or the server stops',
        schema: AlertProblem,
      },
    },
    refusals: [400, 401, 413, 500],
    handle,
  }
}

function receipt(result: DeliveryResult): Reply {
  if (result.kind === 'failed') return problem(502, 'synthesis failed', result.problem)
  if (result.kind === 'stopping') {
    const message = 'the alert is kept, and nothing was started: send it again'
    return problem(503, 'the server is stopping', message, { 'retry-after': '5' })
  }
  if (result.kind === 'triggered') {
    const { session, tier } = result
    return jsonReply({ session_id: session, status: 'triggered', tier }, 202)
  }
  const message = 'a session is running or has just run; the alert is kept, and nothing was started'
  return jsonReply({ session_id: null, status: 'acknowledged', message }, 202)
}

function unreadBody({ reason }: BodyResult & { ok: false }): Reply {
  if (reason === 'overloaded') {
    return problem(503, 'too many bodies at once', 'try again shortly', { 'retry-after': '2' })
  }
  if (reason === 'aborted') throw badRequest('the body did not arrive whole')
  throw new Fault(413, 'BODY_TOO_LARGE', `the body exceeds ${WEBHOOK_LIMIT} bytes`)
}

function problem(
  status: 502 | 503,
  error: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return jsonReply({ error, message }, status, headers)
}
