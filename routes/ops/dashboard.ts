import * as Type from '../../kernel/schema.ts'
import { eventQueries } from '../../db/ops/events.ts'
import { sessionQueries as q } from '../../db/ops/agent/sessions.ts'
import {
  dashboardPage,
  nowFragment,
  triggerForm,
  type DashboardView,
  type NowView,
  type TriggerView,
} from '../../html/ops/dashboard.ts'
import { MAX_COUNT } from '../../html/parts.ts'
import { newForm } from '../../kernel/http/view.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import { Prompt } from '../../services/ops/agent/sessions/prompt.ts'
import { readHealth, type Health } from '../../services/ops/watch/checks/health.ts'
import { readRecent } from '../../services/ops/watch/checks/recent.ts'
import { readWaits } from '../../services/ops/alerts/investigations/waiting.ts'
import { readPause } from '../../services/ops/agent/pause.ts'
import { rangeOf } from '../../services/ops/agent/sessions/ranges.ts'
import { MAX_SEQ } from '../../services/ops/agent/sessions/stream.ts'
import { started } from './faults.ts'
import { form, LONG_FORM_LIMIT, page, type OpsApp } from './kit.ts'
import { Zone } from './agent/sessions.ts'
import { FIRST_ITEMS, listWaiting } from './alerts/waiting.ts'

const MAX_EVENTS = 15
const ANY_EVENT = { level: null, service: null, session: null }
/** Services on the dashboard, the worst first. */
const MAX_SERVICES = 12
/** Lines of the session that runs. */
const MAX_LINES = 8
const DAYS = 14
const DAY_MS = 86_400_000
const TIMES = ['night', 'today', 'week'] as const

const TriggerForm = Type.Object({
  prompt: Prompt,
  tier: field(withDefault(Type.Enum(['auto', '1', '2', '3']), 'auto'), 'must be auto, 1, 2 or 3'),
})

/** `/` and its form (decisions.md section 5, Dashboard). */
export const dashboardEndpoints = [
  page({
    path: '/',
    query: Type.Object({ zone: Zone }),
    answer: ({ app, now, query: { zone } }) => ({
      page: async () => dashboardPage(await dashboardView(app, now, zone)),
      fragment: async () => {
        const health = await readHealth(app.ops, now)
        return nowFragment(await nowView(app, health, now, zone))
      },
    }),
  }),

  form({
    path: '/sessions/trigger',
    body: TriggerForm,
    limit: LONG_FORM_LIMIT,
    async answer({ app, actor, body }) {
      const { ops } = app
      const tier = body.tier === 'auto' ? 1 : Number(body.tier)
      const { prompt } = body
      const { id } = started(await ops.sessions.start({ tier, trigger: 'manual', prompt, actor }))
      const trigger = { ...newTrigger(app), started: id }
      return {
        location: `/sessions/${id}`,
        opens: true,
        fragment: () => triggerForm(trigger),
        done: ['started', `session ${id}`],
      }
    },
    refused({ app, now }, refused) {
      const trigger = { ...newTrigger(app), form: refused }
      return {
        page: async () => dashboardPage(await dashboardView(app, now, '', trigger)),
        fragment: () => triggerForm(trigger),
      }
    },
  }),
]

/** The form as it is at first. */
function newTrigger({ ops }: OpsApp): TriggerView {
  const { config, pause } = ops
  const isPaused = pause.current.investigations.paused
  return { form: newForm(TriggerForm), maxTier: config.current.max_tier, isPaused }
}

/** The part that open pages poll. It reads no long lists. */
async function nowView(
  { ops, baseUrl }: OpsApp,
  health: Health,
  now: Date,
  zone: string,
): Promise<NowView> {
  const { db, config } = ops
  const [running, [last], summary, pause, waits, spend, days] = await Promise.all([
    q.findRunning(db, {}),
    q.listSessions(db, { status: null, trigger: null, offset: 0, limit: 1 }),
    q.findSummary(db, {}),
    readPause(db),
    readWaits(db, ops, now),
    Promise.all(TIMES.map((when) => spentIn(ops, when, now, zone))),
    readDays(ops, now),
  ])
  const shown = health.services.slice(0, MAX_SERVICES)
  const recent = await readRecent(db, shown, now)
  const services = { services: shown, total: health.services.length, recent }
  const page = running && { session: running.id, before: MAX_SEQ, limit: MAX_LINES }
  const lines = page === undefined ? [] : await q.listLinesBefore(db, page)
  const state = { health, running, last, summary, lines: lines.toReversed() }
  const spent = { spend, days, zone }
  return { ...state, config: config.current, pause, waits, services, ...spent, baseUrl: baseUrl() }
}

async function spentIn(
  { db }: OpsApp['ops'],
  when: (typeof TIMES)[number],
  now: Date,
  zone: string,
) {
  const range = rangeOf({ when, from: null, to: null, zone }, now)
  const all = { status: null, trigger: null, limit: MAX_COUNT + 1 }
  return { when, sums: await q.sumSessions(db, { ...range, ...all }) }
}

function readDays({ db }: OpsApp['ops'], today: Date) {
  const since = new Date(today.getTime() - (DAYS - 1) * DAY_MS)
  since.setUTCHours(0, 0, 0, 0)
  return q.listDays(db, { since, until: today, limit: DAYS })
}

async function dashboardView(
  app: OpsApp,
  today: Date,
  zone: string,
  trigger = newTrigger(app),
): Promise<DashboardView> {
  const health = await readHealth(app.ops, today)
  const [now, waiting, events] = await Promise.all([
    nowView(app, health, today, zone),
    listWaiting(app, health, today, FIRST_ITEMS),
    eventQueries.listEvents(app.ops.db, { ...ANY_EVENT, offset: 0, limit: MAX_EVENTS }),
  ])
  return { now, waiting, events, trigger }
}
