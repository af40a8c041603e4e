import { t } from 'tap'
import { hourly } from '../../../html/hooks/dashboard.ts'

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
  const counts = hourly(stats, new Date('2026-05-04T08:30:00.000Z')).map(({ events }) => events)
  t.equal(counts.length, 25)
  t.equal(counts[24], 8, 'of all providers')
  t.same(counts.slice(0, 3), [100, 2, 0], 'the oldest one is cut by the window')
  const sum = counts.reduce((total, count) => total + count, 0)
  t.equal(sum, 110, 'the hours before and after are not drawn')
})
