import Type from 'typebox'
import { t } from 'tap'
import type { Replay } from '../../../db/hooks/send/replays.ts'
import { EVENT_TABS, eventPage } from '../../../html/hooks/event.ts'
import { replaysList } from '../../../html/hooks/send/replays/replays.ts'
import { render } from '../../../kernel/html.ts'
import { ESCAPED, eventView, HOSTILE, shown } from './samples.ts'

t.test('each tab shows its part', async (t) => {
  for (const tab of EVENT_TABS) {
    const text = shown(eventPage({ ...eventView(), tab }))
    const heads = [...text.matchAll(/<h2[^>]*>([^<]*)</g)].map(([, head]) => head)
    const payload = ['Payload', 'Compare with another event']
    t.same(heads, [...payload, 'Request', 'Summary', 'Deliveries', 'Copy as curl'], tab)
    t.match(text, new RegExp(`data-part="${tab}" data-shown`), 'the part of the tab')
    t.equal([...text.matchAll(/data-shown/g)].length, 1)
  }
})

t.test('an event of a broker has no curl command', async (t) => {
  const view = { ...eventView(), curl: null }
  t.notMatch(shown(eventPage(view)), 'tab=curl')
  t.match(shown(eventPage({ ...view, tab: 'curl' })), 'came from a message broker')
})

t.test('the request stands as it was sent', async (t) => {
  const headers = [
    ['X-B', '1'],
    ['x-a', '2'],
    ['X-b', '3'],
  ] as const
  const request = { method: 'POST', path: '/webhooks/generic/ci', query: 'a=b&c', headers }
  const text = shown(eventPage({ ...eventView(), tab: 'request', request }))
  t.match(text, /POST <bdi>\/webhooks\/generic\/ci\?a=b&amp;c</)
  const rows = [...text.matchAll(/<th [^>]*>([^<]*)<\/th>\s*<td[^>]*>([^<]*)</g)]
  t.same(
    rows.map(([, name, value]) => [name, value]),
    [['a', 'b'], ['c', ''], ...headers],
    'the members of the query, then the headers',
  )
  const queued = { method: null, path: null, query: null, headers: [] }
  const queue = eventPage({ ...eventView(), tab: 'request', request: queued })
  t.match(shown(queue), 'No headers are stored.')
})

t.test('white space at the start of a payload is not lost', async (t) => {
  const view = { ...eventView({ payload: '\n\n{"a":1}' }), pretty: null }
  // A parser drops a line break right after <pre>, so the text must not follow it.
  t.match(shown(eventPage(view)), /<pre[^>]*><code>\n\n/)
})

t.test('a repeated body leads to the earlier event, repeats are counted', async (t) => {
  const view = { ...eventView({ attempts: 3 }), sameBody: { id: 7, event_type: 'push' } }
  t.match(shown(eventPage(view)), 'href="/log/7"')
  t.match(shown(eventPage({ ...view, tab: 'request' })), '3 (delivered again')
})

const replay: Replay = {
  id: 7,
  kind: 'forward',
  target: 'http://localhost:3000/hook',
  outcome: 'delivered',
  status: 204,
  ms: 12,
  detail: null,
  answer: null,
  at: new Date('2026-05-04T08:30:00.000Z'),
}

t.test('target, detail, answer, default target and what was typed stay text', async (t) => {
  const texts = { target: HOSTILE, detail: HOSTILE, answer: HOSTILE }
  const hostile = { ...replay, ...texts, outcome: 'failed' } as const
  const refused = {
    schema: Type.Object({}),
    typed: { target_url: HOSTILE },
    fault: { message: HOSTILE, fields: {} },
  }
  const changes = {
    ...({ tab: 'deliveries', defaultTarget: HOSTILE, recentTargets: [`${HOSTILE}2`] } as const),
    laptop: HOSTILE,
    replays: [hostile],
    isReplayed: true,
    sent: refused,
  }
  const text = shown(eventPage({ ...eventView(), ...changes }))
  t.notMatch(text, 'alert("1")')
  t.ok(text.split(ESCAPED).length > 8)
})

t.test('only what was just done is announced', async (t) => {
  t.notMatch(
    render(replaysList({ event: { id: 42 }, receivers: [], replays: [replay] })),
    'role="status"',
  )
  t.match(
    render(replaysList({ event: { id: 42 }, receivers: [], replays: [replay], isReplayed: true })),
    'role="status">Delivered: 204 in 12 ms.',
  )
  const silent = { ...replay, outcome: 'failed', status: null, detail: 'socket hang up' } as const
  const text = render(
    replaysList({ event: { id: 42 }, receivers: [], replays: [silent], isReplayed: true }),
  )
  t.match(text, 'role="status">Not delivered: socket hang up.')
  t.match(
    render(replaysList({ event: { id: 42 }, receivers: [], replays: [], isReplayed: true })),
    'Not sent on yet.',
  )
})

t.test('what a target answered is folded, and open for what was just sent', async (t) => {
  const answered = { ...replay, answer: '{"ok":true}' }
  const later = render(
    replaysList({ event: { id: 42 }, receivers: [], replays: [answered, replay] }),
  )
  t.match(later, /<details>\s*<summary>What it answered</)
  t.match(later, '<code>{&quot;ok&quot;:true}</code>')
  const now = render(
    replaysList({
      event: { id: 42 },
      receivers: [],
      replays: [answered, answered],
      isReplayed: true,
    }),
  )
  t.same(
    [...now.matchAll(/<details( open)?>\s*<summary>What/g)].map(([, open]) => open),
    [' open', undefined],
  )
})
