import * as Type from '../../../kernel/schema.ts'
import {
  Alert,
  alertQueries as q,
  AlertState,
  type AlertText,
} from '../../../db/ops/alerts/alerts.ts'
import { AlertSession, sessionQueries } from '../../../db/ops/agent/sessions.ts'
import { Note } from '../../../db/ops/alerts/incidents.ts'
import { nullable } from '../../../db/sql-file.ts'
import {
  alertPage,
  alertsView,
  MAX_CHARACTERS,
  type ShownAlert,
} from '../../../html/ops/alerts/alerts.ts'
import { notesSection } from '../../../html/ops/alerts/incidents/incident.ts'
import { incidentReport } from '../../../html/ops/alerts/incidents/report.ts'
import { MAX_COUNT } from '../../../html/parts.ts'
import { found, badRequest, Fault } from '../../../kernel/fault.ts'
import { escapeControls } from '../../../kernel/text.ts'
import { parsed, withDefault } from '../../../kernel/validate.ts'
import { visitor } from '../../../kernel/http/endpoint.ts'
import { readBytes } from '../../../kernel/http/read-body.ts'
import { bytesReply, jsonReply } from '../../../kernel/http/reply.ts'
import { newForm } from '../../../kernel/http/view.ts'
import { investigationPrompt } from '../../../services/ops/alerts/alerts/brief.ts'
import { MAX_RECALLED_SUMMARY } from '../../../services/ops/agent/runners/recall.ts'
import { isBlank, type DeliveryResult } from '../../../services/ops/alerts/alerts/receive.ts'
import { MAX_SESSIONS, readIncident } from '../../../services/ops/alerts/incidents/incidents.ts'
import { addNote, listNotes, NoteRequest } from '../../../services/ops/alerts/incidents/notes.ts'
import { keyHolder, outsideSessions } from '../access.ts'
import { started } from '../faults.ts'
import { action, api, form, idOf, page, raw, type OpsApp } from '../kit.ts'
import {
  Filter,
  LATEST,
  listApi,
  paging,
  pagingByTime,
  readPageAfter,
  type Key,
} from '../paging.ts'

const PATH = '/alerts'
const params = { id: idOf('alert') }
const TextsQuery = Type.Object(pagingByTime(50))
const State = parsed(
  withDefault(nullable(AlertState), null),
  'must be firing or resolved',
  (given) => (given === '' ? null : AlertState.enum.find((state) => state === given)),
)
const filters = { state: State, service: Filter }

/** An alert in a list of the API: without its text. */
export const ListedAlert = Type.Omit(Alert, ['payload', 'texts', 'length'])

/** An alert with its newest text, and what was found and done the last times that it fired. */
export const AlertDetail = Type.Object({
  ...ListedAlert.properties,
  payload: Type.String({ description: `Its first ${MAX_CHARACTERS} characters` }),
  length: Type.Integer({ description: 'Characters of the whole payload' }),
  sessions: Type.Array(AlertSession, {
    description: `Those that looked into it, newest first, ${MAX_SESSIONS} at most`,
  }),
  notes: Type.Array(Note, { description: 'What people noted, oldest first' }),
})
const WEBHOOK_LIMIT = 1024 * 1024

/** What became of a delivery: a session, or one runs already. */
export const AlertReceipt = Type.Object({
  session_id: nullable(Type.Integer()),
  status: Type.Enum(['triggered', 'acknowledged']),
  tier: Type.Optional(Type.Integer({ description: 'Of the session, when there is one' })),
  message: Type.Optional(Type.String({ description: 'Why there is no session' })),
  detail: Type.Optional(
    Type.String({
      description: 'What becomes of it, where a setting of alerts or a silence decides',
      examples: ['held for 60 s'],
    }),
  ),
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
    query: Type.Object({ ...pagingByTime(50), ...filters }),
    async answer({ app: { ops }, query }) {
      const [listed, { count }] = await Promise.all([
        readPageAfter(PATH, query, keyOf, ({ after, ...asked }) => {
          const key = { at: new Date(after.rank), id: after.id }
          // A row shows no payload.
          return q.pageAlerts(ops.db, { ...asked, ...key, characters: 0 })
        }),
        q.countAlerts(ops.db, { ...query, limit: MAX_COUNT + 1 }),
      ])
      return alertsView({ ...query, ...listed, count })
    },
  }),

  listApi('Alerts', {
    summary: 'List the alerts, the latest delivery first.',
    row: ListedAlert,
    query: Type.Object({ ...paging(50), ...filters }),
    async list({ app: { ops }, query }) {
      const rows = await q.listAlerts(ops.db, { ...query, characters: 0 })
      return rows.map(toListed)
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/alerts/:id',
    id: 'getAlert',
    tag: 'Alerts',
    summary: 'Show an alert with its newest text and the sessions that looked into it.',
    params,
    returns: { description: 'The alert', schema: AlertDetail },
    async answer({ app, params: { id } }) {
      const { texts: _texts, payload, ...alert } = await findAlert(app, id)
      const [sessions, notes] = await Promise.all([sessionsOf(app, id), listNotes(app.ops.db, id)])
      return {
        ...alert,
        payload: payload.slice(0, MAX_CHARACTERS).toWellFormed(),
        sessions,
        notes,
      }
    },
  }),

  page({
    path: `${PATH}/:id`,
    params,
    query: TextsQuery,
    async answer({ app, params: { id }, query, now }) {
      const shown = await readAlert(app, id, query, now)
      return { page: () => alertPage(shown) }
    },
  }),

  raw({
    path: `${PATH}/:id/report.md`,
    access: visitor,
    params,
    async answer({ app, params: { id }, now }) {
      const alert = await findAlert(app, id)
      const incident = await readIncident(app.ops.db, alert, now)
      const report = incidentReport(alert, incident, addressOf(app, id))
      const lines = report.split('\n').map(escapeControls)
      return bytesReply(lines.join('\n'), 'text/markdown; charset=utf-8', {
        'content-disposition': `attachment; filename="incident-${id}.md"`,
        'content-security-policy': "default-src 'none'; sandbox",
        'cache-control': 'no-store',
      })
    },
  }),

  ...action({
    params,
    find: ({ app, params }) => findAlert(app, params.id),
    body: NoteRequest,
    act: ({ app: { ops }, actor, params: { id }, body, now }) =>
      addNote({ ...ops, actor }, id, body, now),
    api: {
      access: outsideSessions,
      method: 'POST',
      path: '/api/v1/alerts/:id/notes',
      id: 'addAlertNote',
      tag: 'Alerts',
      summary: 'Add a note of a person to an alert.',
      refuses: [409],
      returns: { status: 201, description: 'The note', schema: Note },
    },
    form: {
      access: outsideSessions,
      path: `${PATH}/:id/notes`,
      answer: async ({ app, params: { id } }) => ({
        location: `${PATH}/${id}`,
        done: ['added', 'the note'],
        fragment: async () =>
          notesSection({ id }, await listNotes(app.ops.db, id), newForm(NoteRequest)),
      }),
      async refused({ app, params: { id }, now }, note) {
        const shown = await readAlert(app, id, FIRST_TEXTS, now)
        return {
          page: () => alertPage({ ...shown, note }),
          fragment: () => notesSection({ id }, shown.incident.notes, note),
        }
      },
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
      return { location: `/sessions/${id}`, done: ['started', `session ${id}`] }
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
        'is kept and nothing is started. With OPS_ALERT_HOLD_S, OPS_ALERT_DEDUP_S or ' +
        'OPS_ALERT_QUEUE, and while a silence matches, `detail` says what becomes of it.',
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

function keyOf({ last_seen, id }: Alert): Key {
  return { rank: last_seen.getTime(), id }
}

function keyOfText({ last_seen, number }: AlertText): Key {
  return { rank: last_seen.getTime(), id: number }
}

const FIRST_TEXTS = { limit: 50, after: LATEST }

/** What the page of an alert shows, with an empty form for a note. */
async function readAlert(
  app: OpsApp,
  id: number,
  query: Type.Static<typeof TextsQuery>,
  now: Date,
): Promise<ShownAlert> {
  const alert = await findAlert(app, id)
  const [texts, incident] = await Promise.all([
    readPageAfter(`${PATH}/${id}`, query, keyOfText, ({ after, limit }) => {
      const key = { at: new Date(after.rank), number: after.id }
      return q.pageAlertTexts(app.ops.db, { ...key, limit, alert: id, characters: MAX_CHARACTERS })
    }),
    readIncident(app.ops.db, alert, now),
  ])
  return { alert, texts, incident, address: addressOf(app, id), note: newForm(NoteRequest) }
}

/** The address of the page of an alert, for those who may sign in. */
function addressOf({ baseUrl }: OpsApp, id: number): string {
  return `${baseUrl()}${PATH}/${id}`
}

function sessionsOf({ ops }: OpsApp, alert: number) {
  const bounds = { characters: MAX_RECALLED_SUMMARY, limit: MAX_SESSIONS }
  return sessionQueries.listAlertSessions(ops.db, { alert, before: null, ...bounds })
}

function toListed({ payload: _payload, texts: _texts, length: _length, ...alert }: Alert) {
  return alert
}

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
  const { detail, problem } = result
  const kept = 'the alert is kept, and nothing was started'
  const none = { session_id: null, status: 'acknowledged' } as const
  if (detail !== undefined) return { ...none, message: kept, detail }
  // Not the whole reason: it names who paused them.
  const isPaused = problem !== undefined
  const why = isPaused ? 'investigations are paused' : 'a session is running or has just run'
  return { ...none, message: `${why}; ${kept}` }
}
