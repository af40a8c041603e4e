import { FAILED } from './command.ts'

/** The first SIGTERM or SIGINT; a second one ends the process at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(FAILED)
        asked = true
        resolve(signal)
      })
    }
  })
}
