import { t } from 'tap'
import { dashboardPage, hourly, type DashboardView } from '../../../html/hooks/dashboard.ts'
import { render } from '../../../kernel/html.ts'
import { shown, HOSTILE, summary, ESCAPED, logView, NO_FILTER, card } from './samples.ts'
import { logFragment, logPage } from '../../../html/hooks/log/events/list.ts'
import { providerCard, providerContent } from '../../../html/hooks/receive/providers/card.ts'

const now = new Date('2026-05-04T08:30:00.000Z')

function dashboardView(changes: Partial<DashboardView> = {}): DashboardView {
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
          recent_rejections: 0,
          last_event_at: null,
          alarms: [],
        },
      ],
      db: 'ok',
      broker: 'disabled',
    },
    failing: [],
    events: [summary],
    stats: [],
    unknown: 'unknown',
    ...changes,
  }
}

t.test('the first webhook is explained until there is one', async (t) => {
  t.notMatch(shown(dashboardPage(dashboardView())), 'start-here')
  const empty = shown(dashboardPage(dashboardView({ events: [] })))
  t.match(empty, '$(npx gatehouse provider add first --enable)')
  t.match(empty, 'http://127.0.0.1:8080/webhooks/generic/first')
  t.notMatch(empty, 'id="recent"')
  t.notMatch(empty, 'id="activity"')
  const stats = [{ provider: 'unknown', hour: now, events: 0, rejections: 2 }]
  const refused = shown(dashboardPage(dashboardView({ events: [], stats })))
  t.match(refused, 'start-here')
  t.match(refused, '2 of them to unknown paths', 'what was refused is no secret')
  const { status } = dashboardView()
  const providers = status.providers.map((one) => ({ ...one, last_event_at: now }))
  const pruned = { events: [], status: { ...status, providers } }
  const gone = shown(dashboardPage(dashboardView(pruned)))
  t.notMatch(gone, 'start-here', 'where retention removed all')
  t.match(gone, 'id="recent-rows"')
  t.match(gone, 'No events are kept at present.')
})

t.test('the headline counts what needs somebody; names are escaped', async (t) => {
  const quiet = shown(dashboardPage(dashboardView()))
  t.match(quiet, 'All is well')
  t.notMatch(quiet, 'class="panel problems"')
  const { status } = dashboardView()
  const [provider] = status.providers
  const providers = [HOSTILE, 'generic:b'].map((name) => {
    return { ...provider, name, alarms: ['silent'] }
  }) as unknown as typeof status.providers
  const answer = { last_at: now, last_status: 503, last_detail: null }
  const failing = [{ name: 'erp', disabled_by: null, ...answer }]
  const text = shown(dashboardPage(dashboardView({ status: { ...status, providers }, failing })))
  t.match(text, '2 providers silent, 1 destination failing')
  t.match(text, /href="\/destinations\/erp">erp<\/a>: failing; last answer: 503/)
  t.notMatch(text, 'alert("1")')
  t.notMatch(text, 'All is well')
  t.ok(text.indexOf('>erp</a>') < text.indexOf('generic:<wbr />b</a>'), 'destinations first')
  t.notMatch(text, 'id="more-problems"')
})

t.test('of many problems the first ones are in sight, and the others open', async (t) => {
  const { status } = dashboardView()
  const [provider] = status.providers
  const providers = Array.from({ length: 12 }, (_, at) => {
    return { ...provider, name: `generic:p${at}`, alarms: ['silent'] }
  }) as unknown as typeof status.providers
  const text = shown(dashboardPage(dashboardView({ status: { ...status, providers } })))
  t.match(text, '12 providers silent')
  t.match(text, /<details[^>]* id="more-problems">\s*<summary>4 more<\/summary>/)
})

t.test('the chart has one bar for each hour, the last one being now', async (t) => {
  const at = (hour: string, events: number, provider = 'a') => ({
    provider,
    hour: new Date(`2026-05-${hour}:00:00.000Z`),
    events,
    rejections: 0,
  })
  const stats = [
    at('04T08', 7),
    at('03T09', 2),
    at('03T08', 100),
    at('04T09', 100),
    at('04T08', 1, 'b'),
  ]
  const counts = hourly(stats, now).map(({ events }) => events)
  t.equal(counts.length, 25)
  t.equal(counts[24], 8, 'of all providers')
  t.same(counts.slice(0, 3), [100, 2, 0], 'the oldest one is cut by the window')
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    110,
    'the hours before and after are not drawn',
  )
})

t.test('the chart says in words what it draws', async (t) => {
  const stats = [{ provider: 'generic:ci', hour: now, events: 5, rejections: 0 }]
  const text = shown(dashboardPage(dashboardView({ stats })))
  t.match(
    text,
    'aria-label="Events per hour over 24 hours: 5 in all, at most 5 at 2026-05-04 08:00 UTC"',
  )
  t.match(shown(dashboardPage(dashboardView())), 'No events in the last 24 hours')
})

t.test('verify status is said in words', async (t) => {
  const cases = [
    ['signed', true, 'verified', 'verified'],
    ['signed', false, 'not verified', 'unverified'],
    ['token', false, 'token ok', 'token'],
    ['open', false, 'unchecked', 'open'],
    ['queue', false, 'via broker', 'queue'],
  ] as const
  for (const [trust_mode, verified, label, look] of cases) {
    const text = render(logFragment(logView({ events: [{ ...summary, trust_mode, verified }] })))
    t.match(text, new RegExp(`>\\s*${label}\\s*</span`), `${trust_mode} ${verified}`)
    t.match(text, `class="badge ${look}"`)
  }
})

t.test('a provider that is gone stays chosen in the filter', async (t) => {
  const filter = { ...NO_FILTER, provider: 'generic:gone' }
  t.match(
    shown(logPage(logView({ filter }))),
    /<option value="generic:gone" selected\s*>generic:gone</,
  )
})

t.test('a secret that only the sender makes has to be given', async (t) => {
  const own = card({ trust_mode: 'signed', scheme: 'github' })
  t.match(render(providerContent(own)), /A new secret is made and shown once/)
  const given = render(providerContent({ ...own, scheme: 'slack', isGiven: true }))
  t.match(given, /The provider makes the new secret/)
  t.match(given, /Secret that the sender made<\/label>\s*<input[^>]*\srequired/)
})

t.test('a hostile queue name stays text and one path segment', async (t) => {
  const text = render(
    providerCard(card({ name: `queue:${HOSTILE}/../x`, family: 'queue', channel: HOSTILE })),
  )
  t.match(text, ESCAPED)
  t.notMatch(text, '<script')
  t.match(text, /action="\/providers\/queue%3A[^"/]+\/enabled"/)
})

t.test('rejections are counted, explained and linked', async (t) => {
  const rejections = {
    provider: 'generic:ci',
    total: 12,
    last_reason: 'stale by 400 s',
  }
  const text = render(providerContent({ ...card(), rejections }))
  t.match(text, 'href="/log?rejected=1&amp;provider=generic%3Aci"')
  t.match(text, 'last: stale by 400 s')
})
