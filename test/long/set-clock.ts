import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'

/** A server's wall clock, which a test sets while the server runs. */
export type SetClock = {
  /** Goes to the server's variables. */
  readonly env: Readonly<Record<string, string>>
  /** From now on the clock is so far ahead of the right time; negative: behind. */
  set(aheadMs: number): void
}

/**
 * A module that all threads of the server load gives them another `Date`, whose distance from the right
 * time stands in a file. Nothing else tells the program the time of day, and the embedded engine asks
 * `Date` too. libfaketime would do it for any program, but gets between the threads and the time-outs of
 * their locks; here timers and `performance.now()` stay what they are, as when a real clock is set.
 */
export async function openSetClock(t: Owner): Promise<SetClock> {
  const file = join(await temporaryFolder(t, 'clock'), 'ahead')
  const set = (aheadMs: number): void => {
    writeFileSync(`${file}.new`, String(aheadMs))
    renameSync(`${file}.new`, file)
  }
  set(0)
  const inside = `
    import { readFileSync } from 'node:fs'
    const Real = globalThis.Date
    let [ahead, read] = [0, -Infinity]
    const now = () => {
      if (performance.now() - read > 10) {
        ahead = Number(readFileSync(${JSON.stringify(file)}, 'utf8'))
        read = performance.now()
      }
      return Real.now() + ahead
    }
    const Set = new Proxy(Real, {
      construct: (_, args, made) =>
        Reflect.construct(Real, args.length === 0 ? [now()] : args, made === Set ? Real : made),
      apply: () => new Real(now()).toString(),
      get: (_, name) => (name === 'now' ? now : Real[name]),
    })
    globalThis.Date = Set`
  const preload = `--import=data:text/javascript,${encodeURIComponent(inside)}`
  return { env: { NODE_OPTIONS: preload }, set }
}
