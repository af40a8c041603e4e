import type { Clock } from './clock.ts'

const SLACK_MS = 60_000
const BELIEVED_AFTER_MS = 24 * 3_600_000

/**
 * The present for what removes things by age: a clock that has jumped ahead, while this process runs, is
 * believed after a day, so that there is time to set it right. A clock that goes back is believed at once.
 */
export function openSteadyTime(clock: Clock): () => Date {
  const ahead = (): number => clock.now().getTime() - clock.elapsed()
  let believed = ahead()
  let doubtedSince: number | undefined
  return () => {
    const [seen, elapsed] = [ahead(), clock.elapsed()]
    if (seen <= believed + SLACK_MS) doubtedSince = undefined
    else doubtedSince ??= elapsed
    if (doubtedSince === undefined || elapsed - doubtedSince >= BELIEVED_AFTER_MS) believed = seen
    return new Date(believed + elapsed)
  }
}
