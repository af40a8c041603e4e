import { startHealthLoop, type CheckInterval, type HealthLoopOptions } from './loop.ts'
import { startHealthNotices } from './notices.ts'

export interface HealthOptions extends HealthLoopOptions {
  /** How often addresses are checked; undefined: never. */
  checkInterval: CheckInterval | undefined
}

/** Starts the checks of addresses and their notices, if they are configured. */
export function openHealth(options: HealthOptions) {
  const { checkInterval } = options
  if (checkInterval === undefined) return { async close() {} }
  const loop = startHealthLoop(options, checkInterval)
  const notices = startHealthNotices(options)
  return {
    async close() {
      await Promise.all([loop.close(), notices.stop()])
    },
  }
}
