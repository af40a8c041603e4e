import { t } from 'tap'
import { logUrl } from '../../../html/hooks/log-filter.ts'
import {
  logFragment,
  logPage,
  rejectionsFragment,
  rejectionsPage,
} from '../../../html/hooks/log.ts'
import { render } from '../../../kernel/html.ts'
import { ESCAPED, HOSTILE, logView, NO_FILTER, summary } from './samples.ts'

t.test('the fragment is a part of the page, to the letter', async (t) => {
  const view = logView()
  t.ok(render(logPage(view, 42)).includes(render(logFragment(view))))
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
  t.ok(render(rejectionsPage(rejections)).includes(fragment))
  t.match(fragment, ESCAPED)
  t.notMatch(fragment, '<script')
})

t.test('a hostile event type stays text, in cells and in attributes', async (t) => {
  const filter = {
    provider: HOSTILE,
    event_type: HOSTILE,
    since: HOSTILE,
    limit: 50,
    text: HOSTILE,
    json: HOSTILE,
  }
  const events = [{ ...summary, provider: HOSTILE, event_type: HOSTILE }]
  const text = render(logFragment(logView({ filter, events, next: `/log?cursor=${HOSTILE}` })))
  t.match(text, ESCAPED)
  t.notMatch(text, '<script')
  const page = render(logPage(logView({ filter, events, providers: [HOSTILE] }), 42))
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
  t.notMatch(last, 'hx-get')
  t.match(last, 'No older entries')
})

t.test('an empty log says why and leads on', async (t) => {
  t.match(render(logFragment(logView({ events: [], next: null }))), 'No event was received yet')
  const filter = { ...NO_FILTER, provider: 'chat' }
  t.match(render(logFragment(logView({ filter, events: [] }))), 'No event matches these filters')
})

t.test('a provider that is gone stays chosen in the filter', async (t) => {
  const filter = { ...NO_FILTER, provider: 'generic:gone' }
  t.match(render(logPage(logView({ filter }), 42)), /<option selected\s*>generic:gone</)
})

t.test('addresses of the log carry what differs from the default', async (t) => {
  t.equal(logUrl({ provider: '', limit: 50 }), '/log')
  t.equal(logUrl({ provider: 'generic:a b&c' }), '/log?provider=generic%3Aa+b%26c')
  t.equal(logUrl({ rejected: true, provider: 'chat' }), '/log?rejected=1&provider=chat')
})
