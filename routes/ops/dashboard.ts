import Type from 'typebox'
import { sessionQueries as q } from '../../db/ops/sessions.ts'
import { eventQueries } from '../../db/ops/events.ts'
import {
  dashboardPage,
  nowFragment,
  triggerForm,
  type DashboardView,
  type NowView,
  type TriggerView,
} from '../../html/ops/dashboard.ts'
import { newForm } from '../../kernel/http/endpoint.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import { fitsPrompt, MAX_PROMPT, PROMPT_RULE } from '../../services/ops/sessions/prompt.ts'
import { form, LONG_FORM_LIMIT, page, type OpsApp, started } from './endpoint.ts'

const MAX_EVENTS = 15
const DAYS = 14
const DAY_MS = 86_400_000
const ANY_EVENT = { level: null, service: null, session: null }

const TriggerForm = Type.Object({
  prompt: field(
    Type.String({ maxLength: MAX_PROMPT }),
    { wrong: 'is required', maxLength: `must have ${PROMPT_RULE}` },
    [(prompt) => prompt.trim() !== '', 'is required'],
    [fitsPrompt, `must have ${PROMPT_RULE}`],
  ),
  tier: field(withDefault(Type.Enum(['auto', '1', '2', '3']), 'auto'), 'must be auto, 1, 2 or 3'),
})

/** `/` and its form (decisions.md section 5, Dashboard). */
export const dashboardEndpoints = [
  page({
    path: '/',
    answer: ({ app, now }) => ({
      page: async () => dashboardPage(await dashboardView(app, now)),
      fragment: async () => nowFragment(await nowView(app)),
    }),
  }),

  form({
    path: '/sessions/trigger',
    body: TriggerForm,
    limit: LONG_FORM_LIMIT,
    async answer({ app: { ops }, body }) {
      const tier = body.tier === 'auto' ? 1 : Number(body.tier)
      const { prompt } = body
      const { id } = started(await ops.sessions.start({ tier, trigger: 'manual', prompt }))
      const trigger = { form: newForm(TriggerForm), started: id }
      return { location: `/sessions/${id}`, fragment: () => triggerForm(trigger) }
    },
    refused({ app, now }, refused) {
      const trigger = { form: refused }
      return {
        page: async () => dashboardPage(await dashboardView(app, now, trigger)),
        fragment: () => triggerForm(trigger),
      }
    },
  }),
]

/** The part that open pages poll. It reads no lists. */
async function nowView({ ops: { db, config } }: OpsApp): Promise<NowView> {
  const [running, [last], summary] = await Promise.all([
    q.findRunning(db, {}),
    q.listSessions(db, { offset: 0, limit: 1 }),
    q.findSummary(db, {}),
  ])
  return { running, last, summary, config: config.current }
}

async function dashboardView(
  app: OpsApp,
  today: Date,
  trigger: TriggerView = { form: newForm(TriggerForm) },
): Promise<DashboardView> {
  const { db } = app.ops
  const since = new Date(today.getTime() - (DAYS - 1) * DAY_MS)
  since.setUTCHours(0, 0, 0, 0)
  const [now, events, days] = await Promise.all([
    nowView(app),
    eventQueries.listEvents(db, { ...ANY_EVENT, offset: 0, limit: MAX_EVENTS }),
    q.listDays(db, { since, until: today, limit: DAYS }),
  ])
  return { now, events, days, trigger }
}
