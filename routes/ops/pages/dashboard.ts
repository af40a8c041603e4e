import { listEvents } from '../../../db/ops/events.ts'
import { findSummary, listDays, sessionQueries } from '../../../db/ops/sessions.ts'
import {
  dashboardPage,
  nowFragment,
  type DashboardView,
  type NowView,
} from '../../../html/ops/dashboard.ts'
import { NEW_TRIGGER, triggerForm, type TriggerView } from '../../../html/ops/trigger.ts'
import type { Context } from '../../../kernel/http/context.ts'
import type { FaultValue } from '../../../kernel/fault.ts'
import type { Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { LONG_FORM_LIMIT, linesIn, readForm } from '../../form.ts'
import { pageOrFragment, sentence } from '../../page-answers.ts'
import { fitsPrompt, PROMPT_RULE } from '../../../services/ops/sessions/prompt.ts'
import { badRequest, SESSION_RUNS } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { doneReply, pageRoute, refusedReply } from './page.ts'

const FEED = 15
const DAYS = 14
const DAY_MS = 86_400_000
const TIERS: Readonly<Record<string, number>> = { auto: 1, '1': 1, '2': 2, '3': 3 }
const ALL = { level: null, service: null, session: null }

/** `/` and its form `POST /sessions/trigger` (decisions.md section 5, Dashboard). */
export function dashboardRoutes({ ops }: OpsRoutes): readonly Route[] {
  const { db, sessions, config } = ops

  /** What each open page asks for again and again. */
  async function nowView(): Promise<NowView> {
    const [running, [last], summary] = await Promise.all([
      sessionQueries.findRunning(db, {}),
      sessionQueries.listSessions(db, { offset: 0, limit: 1 }),
      findSummary(db),
    ])
    const { dry_run: dryRun, interval } = config.current
    return { running, last, summary, dryRun, interval }
  }

  async function view(context: Context, trigger = NEW_TRIGGER): Promise<DashboardView> {
    const dayNames = lastDays(context.receivedAt)
    const [now, events, days] = await Promise.all([
      nowView(),
      listEvents(db, ALL, 0, FEED),
      listDays(db, new Date(`${dayNames[0]}T00:00:00Z`)),
    ])
    return { now, events, days, dayNames, trigger }
  }

  function refused(context: Context, typed: TriggerView, fault: FaultValue): Promise<Reply> {
    const trigger = { ...typed, refused: sentence(fault.detail) }
    return refusedReply(
      context,
      fault,
      async () => dashboardPage(await view(context, trigger)),
      () => triggerForm(trigger),
    )
  }

  return [
    pageRoute({
      ...{ method: 'GET', path: '/' },
      async answer(context) {
        return pageOrFragment(
          context,
          async () => dashboardPage(await view(context)),
          async () => nowFragment(await nowView()),
        )
      },
    }),
    pageRoute({
      ...{ method: 'POST', path: '/sessions/trigger' },
      async answer(context) {
        const form = await readForm(context, LONG_FORM_LIMIT)
        if ('status' in form) return form
        const prompt = linesIn(form, 'prompt')
        const asked = form.get('tier') ?? 'auto'
        const typed = { ...NEW_TRIGGER, prompt, tier: asked }
        const tier = Object.hasOwn(TIERS, asked) ? TIERS[asked] : undefined
        if (prompt.trim() === '') return refused(context, typed, badRequest('prompt is required'))
        if (!fitsPrompt(prompt)) {
          const fault = badRequest(`prompt must have ${PROMPT_RULE}`)
          return refused(context, { ...typed, prompt: '' }, fault)
        }
        if (tier === undefined) {
          return refused(context, typed, badRequest('tier must be auto, 1, 2 or 3'))
        }
        const session = await sessions.start({ tier, trigger: 'manual', prompt })
        if (session === undefined) return refused(context, typed, SESSION_RUNS)
        return doneReply(context, `/sessions/${session.id}`, () =>
          triggerForm({ ...NEW_TRIGGER, started: session.id }),
        )
      },
    }),
  ]
}

/** The days of the spark lines, today last. */
function lastDays(now: Date): readonly string[] {
  return Array.from({ length: DAYS }, (_, at) =>
    new Date(now.getTime() - (DAYS - 1 - at) * DAY_MS).toISOString().slice(0, 10),
  )
}
