import { FAILED } from './command.ts'

/** The terminal gives a Ctrl-C to npm and to what npm has started, and npm passes its own on: one press, told twice. */
const PRESS_MS = 300

/** The first SIGTERM or SIGINT; a second one ends the process at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let first: { readonly signal: string; readonly at: number } | undefined
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        const at = performance.now()
        const told = first?.signal === signal && at - first.at < PRESS_MS
        if (first !== undefined && !told) process.exit(FAILED)
        first ??= { signal, at }
        resolve(signal)
      })
    }
  })
}
