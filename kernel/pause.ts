import { setTimeout as sleep } from 'node:timers/promises'

/** Waits, less when the signal is aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}
