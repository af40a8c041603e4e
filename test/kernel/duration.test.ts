import { t } from 'tap'
import { formatDuration, parseDuration } from '../../kernel/duration.ts'

t.test('durations as text', async (t) => {
  const same: Readonly<Record<string, number>> = {
    '0': 0,
    '1s': 1,
    '90s': 90,
    '15m': 900,
    '1h': 3_600,
    '24h': 86_400,
    '25h': 90_000,
    '7d': 604_800,
  }
  for (const [text, seconds] of Object.entries(same)) {
    t.equal(parseDuration(text), seconds, text)
    t.equal(formatDuration(seconds), text, text)
  }
  t.equal(parseDuration('1d'), 86_400)
  t.equal(formatDuration(3_601), '3601s')
  for (const text of ['', '5', 'h', '1.5h', '-1h', '1 h', '1H', '1h30m', '1w', '1234567890s']) {
    t.equal(parseDuration(text), undefined, `"${text}"`)
  }
})
