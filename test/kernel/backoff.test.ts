import { t } from 'tap'
import { backoffMs } from '../../kernel/backoff.ts'

const lowest = (size: number): Buffer => Buffer.alloc(size)
const highest = (size: number): Buffer => Buffer.alloc(size, 255)

t.test('each failure doubles the wait, up to ten seconds', async (t) => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 1_000].map((failures) => backoffMs(failures, highest))
  t.same(waits, [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
})

t.test('half of the wait is left to chance', async (t) => {
  t.equal(backoffMs(1, lowest), 100)
  t.equal(backoffMs(1_000, lowest), 5_000)
})
