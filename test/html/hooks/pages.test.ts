import Type from 'typebox'
import { t } from 'tap'
import { dashboardPage, hourly, type DashboardView } from '../../../html/hooks/dashboard.ts'
import { render } from '../../../kernel/html.ts'
import { shown, HOSTILE, summary, ESCAPED, logView, NO_FILTER, card } from './samples.ts'
import { logUrl } from '../../../html/hooks/events/filter.ts'
import { logFragment, logPage } from '../../../html/hooks/events/list.ts'
import { rejectionsFragment, rejectionsPage } from '../../../html/hooks/rejections.ts'
import { providerCard, providerContent } from '../../../html/hooks/providers/card.ts'
import {
  providersFragment,
  providersPage,
  type ProvidersView,
} from '../../../html/hooks/providers/providers.ts'
import { settingsForm, settingsPage, type SettingsView } from '../../../html/hooks/settings.ts'

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
    reasons: [],
    events: [summary],
    stats: [],
    unknown: 'unknown',
    ...changes,
  }
}

t.test('the strip has exactly the two labels', async (t) => {
  const idle = dashboardView()
  t.match(shown(dashboardPage(idle)), '<span>idle</span>')
  const status = { ...idle.status, connection: 'receiving' as const }
  t.match(shown(dashboardPage(dashboardView({ status }))), '<span>receiving</span>')
})

t.test('the stream resumes after the newest event on the page', async (t) => {
  t.match(shown(dashboardPage(dashboardView())), 'data-last="42"')
  t.match(shown(dashboardPage(dashboardView({ events: [], position: 7 }))), 'data-last="7"')
})

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

t.test('hostile names and types stay text', async (t) => {
  const events = [{ ...summary, provider: HOSTILE, event_type: HOSTILE, preview: HOSTILE }]
  t.notMatch(shown(dashboardPage(dashboardView({ events }))), 'alert("1")')
})

t.test('reasons are named and escaped', async (t) => {
  t.notMatch(shown(dashboardPage(dashboardView())), 'Degraded')
  const reasons = [`many rejected deliveries: ${HOSTILE}`]
  const text = shown(dashboardPage(dashboardView({ reasons })))
  t.match(text, '<li>many rejected deliveries: ')
  t.match(text, 'Degraded')
  t.notMatch(text, 'alert("1")')
})

t.test('a long list of providers has a field that narrows it', async (t) => {
  const { status } = dashboardView()
  type Line = (typeof status.providers)[number]
  const [one] = status.providers
  const providers = Array.from({ length: 21 }, (_, n) => ({
    ...(one as Line),
    name: `generic:p${n}`,
  }))
  const text = shown(dashboardPage(dashboardView({ status: { ...status, providers } })))
  t.match(text, 'data-filters="provider-rows"')
  t.match(text, '21 providers')
  t.ok(text.length < 60_000, `${text.length} bytes`)
  t.notMatch(shown(dashboardPage(dashboardView())), 'data-filters')
  const cards = providers.map(({ name }) => card({ name }))
  const page = shown(providersPage({ ...providersView(), cards }))
  t.match(page, 'data-filters="provider-rows"')
  t.match(page, '21 providers')
  t.ok(page.length < 60_000, `${page.length} bytes`)
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
  t.match(text, 'aria-label="Events per hour over 24 hours: 5 in all, at most 5 at 08:00 UTC"')
  t.match(shown(dashboardPage(dashboardView())), 'No events in the last 24 hours')
})

t.test('the fragment is a part of the page, to the letter', async (t) => {
  const view = logView()
  t.ok(shown(logPage(view)).includes(render(logFragment(view))))
  const { filter, providers, next } = view
  const rejection = {
    id: 1,
    at: summary.received_at,
    provider: 'payments',
    status: 401,
    source: '203.0.113.0/24',
    reason: HOSTILE,
  }
  const rejections = { filter, providers, below: false, next, rejections: [rejection] }
  const fragment = render(rejectionsFragment(rejections))
  t.ok(shown(rejectionsPage(rejections)).includes(fragment))
  t.match(fragment, ESCAPED)
  t.notMatch(fragment, '<script')
})

t.test('a hostile event type stays text, in cells and in attributes', async (t) => {
  const filter = {
    provider: HOSTILE,
    event_type: HOSTILE,
    since: HOSTILE,
    until: HOSTILE,
    verified: 'true' as const,
    header: HOSTILE,
    limit: 50,
    text: HOSTILE,
    json: HOSTILE,
    rejected: '',
  }
  const events = [{ ...summary, provider: HOSTILE, event_type: HOSTILE, preview: HOSTILE }]
  const text = render(logFragment(logView({ filter, events, next: `/log?cursor=${HOSTILE}` })))
  t.match(text, ESCAPED)
  t.notMatch(text, '<script')
  const page = shown(logPage(logView({ filter, events, providers: [HOSTILE] })))
  t.notMatch(page, 'alert("1")')
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

t.test('the next page is a plain link that htmx turns into rows', async (t) => {
  t.match(render(logFragment(logView())), 'href="/log?cursor=abc&amp;limit=1"')
  const last = render(logFragment(logView({ next: null })))
  t.notMatch(last, 'hx-select')
  t.match(last, 'No older entries')
})

t.test('an empty log says why and leads on', async (t) => {
  t.match(render(logFragment(logView({ events: [], next: null }))), 'No event was received yet')
  const filter = { ...NO_FILTER, provider: 'chat' }
  t.match(render(logFragment(logView({ filter, events: [] }))), 'No event matches these filters')
})

t.test('a provider that is gone stays chosen in the filter', async (t) => {
  const filter = { ...NO_FILTER, provider: 'generic:gone' }
  t.match(
    shown(logPage(logView({ filter }))),
    /<option value="generic:gone" selected\s*>generic:gone</,
  )
})

t.test('addresses of the log carry what differs from the default', async (t) => {
  t.equal(logUrl({ provider: '', limit: 50 }), '/log')
  t.equal(logUrl({ provider: 'generic:a b&c' }), '/log?provider=generic%3Aa+b%26c')
  t.equal(logUrl({ rejected: '1', provider: 'chat' }), '/log?rejected=1&provider=chat')
})

const CREATE = Type.Object({ name: Type.String(), trust_mode: Type.String() })

function providersView(changes: Partial<ProvidersView> = {}): ProvidersView {
  return {
    cards: [card()],
    baseUrl: 'http://h',
    canSign: true,
    form: { schema: CREATE },
    ...changes,
  }
}

t.test('page, fragment and card are made of the same parts', async (t) => {
  const fragment = render(providersFragment(providersView()))
  t.ok(shown(providersPage(providersView())).includes(fragment))
  t.ok(fragment.includes(render(providerCard(card()))))
  t.notMatch(fragment, '/rotate', 'a closed row is small')
  const open = card({ open: true })
  const whole = render(providerCard(open))
  t.ok(whole.includes(render(providerContent(open))))
  t.match(whole, '<details open')
  t.notMatch(whole, 'hx-get')
})

t.test('the switch says its state and posts the other one', async (t) => {
  const off = render(providerCard(card()))
  t.match(off, /aria-checked="false"[^>]*value="true"/)
  t.match(off, />\s*Disabled\s*</)
  const on = render(providerCard(card({ enabled: true })))
  t.match(on, /aria-checked="true"[^>]*value="false"/)
  t.match(on, 'action="/providers/generic%3Aci/enabled"')
})

t.test('a missing secret names its variable and blocks the switch', async (t) => {
  const chat = card({ name: 'chat', trust_mode: 'signed', secret_status: 'missing' })
  const text = render(providerCard({ ...chat, variable: 'HOOKS_CHAT_SECRET' }))
  t.match(text, '<code>HOOKS_CHAT_SECRET</code>')
  t.match(text, /value="true"\s+disabled/)
  t.notMatch(text, '/remove', 'signed providers are part of the program')
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

t.test('a token is shown where one was made, and only there', async (t) => {
  const url = 'http://h/webhooks/generic/ci'
  const made = {
    name: 'generic:ci',
    trust_mode: 'token',
    scheme: null,
    scheme_row: null,
    token: 'tok-en',
    url,
    rotated: false,
  } as const
  t.match(render(providersFragment(providersView({ made }))), 'Authorization: Bearer tok-en')
  t.notMatch(
    render(providersFragment(providersView({ made: { ...made, token: null } }))),
    'Authorization',
  )
  t.notMatch(render(providersFragment(providersView())), 'id="made"')
})

t.test('a refused form keeps what was typed', async (t) => {
  const form = {
    schema: CREATE,
    typed: { name: 'x"y', trust_mode: 'open' },
    fault: { message: 'The name is taken.', fields: { name: 'The name is taken.' } },
  }
  const text = render(providersFragment(providersView({ form })))
  t.match(text, 'value="x&quot;y"')
  t.match(text, /value="open"\s+checked/)
  t.match(text, /aria-invalid="true"/)
  t.match(text, 'The name is taken.')
})

const SETTINGS = Type.Object({ sse_retry_ms: Type.Integer({ minimum: 250 }) })

function settingsView(changes: Partial<SettingsView> = {}): SettingsView {
  return {
    form: { schema: SETTINGS, typed: { sse_retry_ms: '3000' } },
    configuration: [['HOOKS_ADDR', '127.0.0.1:8080']],
    endpoints: [],
    newEndpoint: { schema: SETTINGS },
    forwarders: [],
    connected: [],
    countedTo: 1_000,
    baseUrl: 'http://127.0.0.1:8080',
    ...changes,
  }
}

t.test('the form is a part of the page, to the letter', async (t) => {
  const page = shown(settingsPage(settingsView()))
  t.ok(page.includes(render(settingsForm(settingsView()))))
  t.match(page, '0 = no limit')
  t.match(page, /HOOKS_ADDR[\s\S]*127\.0\.0\.1:8080/)
})

t.test('saving is announced', async (t) => {
  t.match(render(settingsForm(settingsView({ saved: true }))), /role="status"[^>]*>Saved/)
  t.notMatch(render(settingsForm(settingsView())), 'role="status"')
})

t.test('a refusal stands at its field', async (t) => {
  const fault = { message: 'At least 250.', fields: { sse_retry_ms: 'At least 250.' } }
  const form = { schema: SETTINGS, typed: { sse_retry_ms: '1' }, fault }
  const text = render(settingsForm(settingsView({ form })))
  t.match(text, /id="sse_retry_ms"[^>]*aria-invalid="true"/)
  t.match(text, /id="sse_retry_ms-refused"[^>]*>At least 250\./)
  t.equal(text.match(/aria-invalid/g)?.length, 1)
})
