import { t } from 'tap'
import type { Attempt } from '../../../db/hooks/rows.ts'
import { attemptsList, replaySection } from '../../../html/hooks/attempts.ts'
import { render } from '../../../kernel/html.ts'
import { ESCAPED, HOSTILE } from './samples.ts'

const attempt: Attempt = {
  id: 7,
  kind: 'forward',
  target: 'http://localhost:3000/hook',
  outcome: 'delivered',
  status: 204,
  ms: 12,
  detail: null,
  at: new Date('2026-05-04T08:30:00.000Z'),
}
const view = { eventId: 42, defaultTarget: null, attempts: [attempt], done: false, refused: null }

t.test('target, detail, default target and what was typed stay text', async (t) => {
  const hostile = { ...attempt, target: HOSTILE, detail: HOSTILE, outcome: 'failed' } as const
  const refused = { typed: HOSTILE, message: HOSTILE }
  const all = { ...view, defaultTarget: HOSTILE, attempts: [hostile], done: true, refused }
  const text = render(replaySection(all))
  t.notMatch(text, 'alert("1")')
  t.equal(text.split(ESCAPED).length - 1, 7)
})

t.test('the list is the same on the page and alone', async (t) => {
  t.ok(render(replaySection(view)).includes(render(attemptsList(view))))
  t.match(render(attemptsList(view)), /204 in 12 ms.*forward.*datetime="2026-05-04T08:30:00.000Z"/s)
})

t.test('only what was just done is announced', async (t) => {
  t.notMatch(render(attemptsList(view)), 'role="status"')
  t.match(render(attemptsList({ ...view, done: true })), 'role="status">Delivered: 204 in 12 ms.')
  const silent = { ...attempt, outcome: 'failed', status: null, detail: 'socket hang up' } as const
  const text = render(attemptsList({ attempts: [silent], done: true }))
  t.match(text, 'role="status">Not delivered: socket hang up.')
  t.match(render(attemptsList({ attempts: [], done: true })), 'It was not sent on yet.')
})
