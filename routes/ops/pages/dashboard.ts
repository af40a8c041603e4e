import { listEvents } from '../../../db/ops/events.ts'
import { findRunning, findSummary, listDays, listSessions } from '../../../db/ops/sessions.ts'
import { dashboardPage, nowFragment, type DashboardView } from '../../../html/ops/dashboard.ts'
import { NEW_TRIGGER, triggerForm, type TriggerView } from '../../../html/ops/trigger.ts'
import type { Context } from '../../../kernel/context.ts'
import type { Fault } from '../../../kernel/fault.ts'
import type { Reply } from '../../../kernel/reply.ts'
import type { Route } from '../../../kernel/router.ts'
import { LONG_FORM_LIMIT, linesIn, readForm } from '../../form.ts'
import { badRequest, sentence } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { doneReply, pageOrFragment, pageRoute, refusedReply, SESSION_RUNS } from './page.ts'

const FEED = 15
const DAYS = 14
const DAY_MS = 86_400_000
const PROMPT_LONGEST = 100_000
const TIERS: Readonly<Record<string, number>> = { auto: 1, '1': 1, '2': 2, '3': 3 }
const ALL = { level: null, service: null, session: null }

/** `/` and its form `POST /sessions/trigger` (decisions.md section 5, Dashboard). */
export function dashboardRoutes({ ops }: OpsRoutes): readonly Route[] {
  const { db, sessions, config } = ops

  async function view(context: Context, trigger = NEW_TRIGGER): Promise<DashboardView> {
    const dayNames = lastDays(context.receivedAt)
    const [running, [last], summary, events, days] = await Promise.all([
      findRunning(db),
      listSessions(db, 0, 1),
      findSummary(db),
      listEvents(db, ALL, 0, FEED),
      listDays(db, new Date(`${dayNames[0]}T00:00:00Z`)),
    ])
    const { dry_run: dryRun, interval } = config.current
    return { running, last, summary, events, days, dayNames, dryRun, interval, trigger }
  }

  function refused(context: Context, typed: TriggerView, fault: Fault): Promise<Reply> {
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
        const shown = await view(context)
        return pageOrFragment(
          context,
          () => dashboardPage(shown),
          () => nowFragment(shown),
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
        if (prompt.length > PROMPT_LONGEST || prompt.includes('\0')) {
          const detail = `prompt must have ${PROMPT_LONGEST} characters at most, and no NUL`
          return refused(context, { ...typed, prompt: '' }, badRequest(detail))
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
