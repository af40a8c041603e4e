import { t } from 'tap'
import { hourly } from '../../../html/hooks/chart.ts'
import { dashboardPage } from '../../../html/hooks/dashboard.ts'
import type { DashboardView } from '../../../html/hooks/views.ts'
import { render } from '../../../kernel/html.ts'
import { HOSTILE, summary } from './samples.ts'

const now = new Date('2026-05-04T08:30:00.000Z')

function view(changes: Partial<DashboardView> = {}): DashboardView {
  return {
    baseUrl: 'http://127.0.0.1:8080',
    program: 'npx gatehouse',
    position: 42,
    status: {
      connection: 'idle',
      generated_at: now,
      providers: [
        {
          name: 'generic:ci',
          trust_mode: 'token',
          enabled: true,
          recent_count: 5,
          last_event_at: null,
          alarms: [],
        },
      ],
      db: 'ok',
      broker: 'disabled',
    },
    events: [summary],
    activity: [],
    rejections: [],
    ...changes,
  }
}

t.test('a row that the script adds has a badge for whatever an event says', async (t) => {
  const [template = ''] =
    /<template id="event-row".*?<\/template/s.exec(render(dashboardPage(view()))) ?? []
  for (const state of ['verified', 'signed', 'token', 'open', 'queue']) {
    t.match(template, `data-verify="${state}"`)
  }
})

t.test('the strip has exactly the two labels', async (t) => {
  const idle = view()
  t.match(render(dashboardPage(idle)), /data-connection-label>idle</)
  const status = { ...idle.status, connection: 'receiving' as const }
  t.match(render(dashboardPage(view({ status }))), /data-connection-label>receiving</)
})

t.test('the stream resumes after the newest event on the page', async (t) => {
  t.match(render(dashboardPage(view())), 'data-live="42"')
  t.match(render(dashboardPage(view({ events: [], position: 7 }))), 'data-live="7"')
})

t.test('the first webhook is explained until there is one', async (t) => {
  t.notMatch(render(dashboardPage(view())), 'first-webhook')
  const empty = render(dashboardPage(view({ events: [] })))
  t.match(empty, '$(npx gatehouse provider add first --enable)')
  t.match(empty, 'http://127.0.0.1:8080/webhooks/generic/first')
  t.match(empty, /<section id="recent"[^>]*hidden/)
})

t.test('hostile names and types stay text', async (t) => {
  const events = [{ ...summary, provider: HOSTILE, event_type: HOSTILE }]
  t.notMatch(render(dashboardPage(view({ events }))), 'alert("1")')
})

t.test('the chart has one bar for each of 24 hours, the last one being now', async (t) => {
  const at = (hour: string, events: number, provider = 'a') => ({
    provider,
    hour: new Date(`2026-05-${hour}:00:00.000Z`),
    events,
  })
  const activity = [
    at('04T08', 7),
    at('03T09', 2),
    at('03T08', 100),
    at('04T09', 100),
    at('04T08', 1, 'b'),
  ]
  const counts = hourly('a', activity, now)
  t.equal(counts.length, 24)
  t.equal(counts[23], 7)
  t.equal(counts[0], 2)
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    9,
  )
})

t.test('the chart says in words what it draws', async (t) => {
  const activity = [{ provider: 'generic:ci', hour: now, events: 5 }]
  const text = render(dashboardPage(view({ activity })))
  t.match(text, 'aria-label="Events per hour over 24 hours: 5 in all, at most 5 at 08:00 UTC"')
  t.match(render(dashboardPage(view())), 'No events in the last 24 hours')
})
