/** Handles an error that nobody has caught. */
type OnError = (error: unknown, kind: 'uncaughtException' | 'unhandledRejection') => void

/** The domains that live, the newest last. */
const live: Domain[] = []

/**
 * Stands for the class of `async-hook-domain`, with which tap finds the test that an uncaught error belongs to.
 * That one follows each promise of the process by a hook, which takes a tenth of a run. Here the test is the one
 * that was made last. Of several that stand in line it may be another one, of the same file.
 */
export class Domain {
  onerror: OnError

  constructor(onerror: OnError) {
    this.onerror = onerror
    live.push(this)
  }

  destroy() {
    const at = live.indexOf(this)
    if (at >= 0) live.splice(at, 1)
  }
}

for (const kind of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(kind, (error: unknown) => {
    const newest = live.at(-1)
    if (newest === undefined) throw error
    newest.onerror(error, kind)
  })
}
