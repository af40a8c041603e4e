import Type from 'typebox'
import { nullable } from '../../db/rows.ts'
import { bearsKey } from '../../kernel/http/headers.ts'
import type { BodyResult } from '../../kernel/http/body.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { isBlank, type AlertOutcome } from '../../services/ops/alerts/receive.ts'
import { badRequest, opsFault } from './faults.ts'
import type { OpsRoutes } from './options.ts'

const BODY_LIMIT = 1024 * 1024

/** What came of a delivery: a session of it, or one runs already. */
export const AlertReceipt = Type.Object({
  session_id: nullable(Type.Integer()),
  status: Type.Enum(['triggered', 'acknowledged']),
  tier: Type.Optional(Type.Integer({ description: 'Of the session, when there is one' })),
  message: Type.Optional(Type.String({ description: 'Why there is no session' })),
})

/** A refusal that says more than its kind. */
export const AlertProblem = Type.Object({
  error: Type.String(),
  message: Type.Optional(Type.String({ description: 'What is to be done about it' })),
})

/** `POST /api/v1/webhook` (ops.md section 4): the checks in the order of decisions.md section 5. */
export function webhookOperation({ ops, chatKey }: OpsRoutes): Operation {
  async function handle(context: Context): Promise<Reply> {
    const key = chatKey()
    if (key === undefined) {
      const message = 'set OPS_CHAT_API_KEY, and send it as Authorization: Bearer KEY'
      return problem(503, 'the webhook is not configured', message)
    }
    if (!bearsKey(context.headers, key)) return opsFault(UNAUTHORIZED, context)
    const body = await context.body(BODY_LIMIT)
    if (!body.ok) return unread(body, context)
    if (isBlank(body.bytes)) return opsFault(badRequest('the body is blank'), context)
    return answer(await ops.alerts.receive(body.bytes, context.receivedAt, context.gone()))
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

const UNAUTHORIZED = {
  status: 401,
  code: 'UNAUTHORIZED',
  detail: 'unauthorized',
  headers: { 'www-authenticate': 'Bearer' },
}

function answer(outcome: AlertOutcome): Reply {
  if (outcome.kind === 'failed') return problem(502, 'synthesis failed', outcome.problem)
  if (outcome.kind === 'stopping') {
    const message = 'the alert is kept, and nothing was started: send it again'
    return problem(503, 'the server is stopping', message, { 'retry-after': '5' })
  }
  if (outcome.kind === 'triggered') {
    const { session, tier } = outcome
    return jsonReply({ session_id: session, status: 'triggered', tier }, 202)
  }
  const message = 'a session is running or has just run; the alert is kept, and nothing was started'
  return jsonReply({ session_id: null, status: 'acknowledged', message }, 202)
}

function unread({ reason }: BodyResult & { ok: false }, context: Context): Reply {
  if (reason === 'overloaded') {
    return problem(503, 'too many bodies at once', 'try again shortly', { 'retry-after': '2' })
  }
  if (reason === 'aborted') return opsFault(badRequest('the body did not arrive whole'), context)
  const detail = `the body exceeds ${BODY_LIMIT} bytes`
  return opsFault({ status: 413, code: 'BODY_TOO_LARGE', detail }, context)
}

function problem(
  status: 502 | 503,
  error: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return jsonReply({ error, message }, status, headers)
}
