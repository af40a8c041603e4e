import { t } from 'tap'
import { eventPage } from '../../../html/hooks/event.ts'
import { render } from '../../../kernel/html.ts'
import { ESCAPED, eventView, HOSTILE } from './samples.ts'

t.test('hostile payload, headers, type and command stay text', async (t) => {
  const hostile = { payload: HOSTILE, headers: { [HOSTILE]: HOSTILE }, event_type: HOSTILE }
  const text = render(eventPage({ ...eventView(hostile), pretty: HOSTILE, curl: HOSTILE }))
  t.notMatch(text, 'alert("1")')
  t.ok(text.split(ESCAPED).length - 1 >= 7, 'in title, heading, summary, payload, headers, command')
})

t.test('the payload is shown indented and as received', async (t) => {
  const text = render(eventPage(eventView()))
  t.ok(text.includes('<code>{\n  &quot;a&quot;: 1\n}</code>'))
  t.ok(text.includes('<code>{&quot;a&quot;:1}</code>'))
  t.match(text, 'href="/log/42/payload"')
})

t.test('white space at the start of a payload is not lost', async (t) => {
  const view = { ...eventView({ payload: '\n\n{"a":1}' }), pretty: null }
  // A parser drops a line break right after <pre>, so the text must not follow it.
  t.match(render(eventPage(view)), /<pre[^>]*><code>\n\n/)
})

t.test('bytes that are no text are announced as base64', async (t) => {
  const view = { ...eventView({ payload: 'AAEC/w==', payload_encoding: 'base64' }), pretty: null }
  const text = render(eventPage(view))
  t.match(text, 'shown as base64')
  t.match(text, 'AAEC/w==')
  t.notMatch(text, 'Raw text as received')
})

t.test('a very long payload is cut, and the page says so', async (t) => {
  const view = { ...eventView({ payload: 'x'.repeat(300_000) }), pretty: null }
  const text = render(eventPage(view))
  t.match(text, /first 200000 of 300000 characters/)
  t.ok(text.length < 220_000)
})

t.test('a repeated body leads to the earlier event, repeats are counted', async (t) => {
  const text = render(eventPage({ ...eventView({ attempts: 3 }), sameBody: 7 }))
  t.match(text, 'href="/log/7"')
  t.match(text, '3 (delivered again')
})
