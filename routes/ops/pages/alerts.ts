import {
  findAlert,
  LISTED_PAYLOAD,
  listAlerts,
  listAlertTexts,
  noteAlert,
} from '../../../db/ops/alerts.ts'
import { alertCard, alertPage, alertsPage } from '../../../html/ops/alerts.ts'
import type { Html } from '../../../kernel/html.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { investigationPrompt } from '../../../services/ops/alerts/investigate.ts'
import { readOptionalForm } from '../../form.ts'
import { sentence } from '../../page-answers.ts'
import { readList } from '../api/operation.ts'
import { notFound, SESSION_RUNS } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { doneReply, pageOf, pageRoute, refusedReply, rowIdOf } from './page.ts'

const USUAL = 50

/** `/alerts` and its Investigate (decisions.md section 5, Webhook). */
export function alertRoutes({ ops }: OpsRoutes): readonly Route[] {
  const { db, sessions, random } = ops
  return [
    pageRoute({
      ...{ method: 'GET', path: '/alerts' },
      async answer(context) {
        const asked = readList(context, USUAL)
        if ('status' in asked) return asked
        const found = await listAlerts(db, asked.offset, asked.limit + 1)
        const { rows, older } = pageOf(found, asked, '/alerts')
        return htmlReply(alertsPage(rows, LISTED_PAYLOAD, older, null))
      },
    }),
    pageRoute({
      ...{ method: 'GET', path: '/alerts/:id' },
      async answer(context) {
        const asked = readList(context, USUAL)
        if ('status' in asked) return asked
        const alert = await findAlert(db, rowIdOf(context))
        if (alert === undefined) return notFound('alert')
        const found = await listAlertTexts(db, alert.id, asked.offset, asked.limit + 1)
        const { rows, older } = pageOf(found, asked, `/alerts/${alert.id}`)
        return htmlReply(alertPage(alert, rows, LISTED_PAYLOAD, older))
      },
    }),
    pageRoute({
      ...{ method: 'POST', path: '/alerts/:id/investigate' },
      async answer(context) {
        const form = await readOptionalForm(context)
        if ('status' in form) return form
        const alert = await findAlert(db, rowIdOf(context))
        if (alert === undefined) return notFound('alert')
        const { id } = alert
        const prompt = investigationPrompt(alert, random)
        const session = await sessions.start({ tier: 1, trigger: 'manual', prompt })
        if (session === undefined) {
          const message = sentence(SESSION_RUNS.detail)
          return refusedReply(
            context,
            SESSION_RUNS,
            async () => {
              const alerts = await listAlerts(db, 0, USUAL)
              return alertsPage(alerts, LISTED_PAYLOAD, undefined, { id, message })
            },
            () => alertCard(alert, LISTED_PAYLOAD, message),
          )
        }
        await noteAlert(db, alert, 'triggered', { session: session.id })
        return doneReply(context, `/sessions/${session.id}`, async (): Promise<Html> =>
          alertCard(
            { ...alert, outcome: 'triggered', problem: null, session_id: session.id },
            LISTED_PAYLOAD,
          ),
        )
      },
    }),
  ]
}
