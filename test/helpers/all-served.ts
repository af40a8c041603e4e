import type { Test } from 'tap'
import type { Load } from './deliveries.ts'
import type { VisitLoad } from './visit-load.ts'

/** Asserts that every delivery was accepted and every visit led on, whatever happened to the servers. */
export function allServed(t: Test, loads: readonly Load[], visits: readonly VisitLoad[]): void {
  for (const { unanswered, refused } of loads) {
    t.same(unanswered, [], 'every delivery is answered')
    t.same(refused, [], 'and accepted')
  }
  for (const { unanswered, others, total } of visits) {
    t.equal(unanswered, 0, 'every visit is answered')
    t.same(others, [], 'and leads on')
    t.ok(total > 0, 'there were visits')
  }
}
