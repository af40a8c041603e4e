import { Worker } from 'node:worker_threads'
import type { Owner } from './measure.ts'
import type { PacedOrder, PacedResult } from './paced-worker.ts'

/** A load that does not end by itself. */
export interface PacedLoad {
  /** `take` gives what was measured since the last time, `stop` waits for the last answers. */
  tell(word: 'take' | 'stop'): Promise<PacedResult>
}

/** Signed deliveries of code_host at a steady rate, each with an id of its own, from a thread of its own. */
export function startPacedLoad(owner: Owner, order: PacedOrder): PacedLoad {
  const url = new URL('./paced-worker.ts', import.meta.url)
  const worker = new Worker(url, { workerData: order })
  owner.teardown(() => worker.terminate())
  return {
    tell(word) {
      worker.postMessage(word)
      return new Promise((resolve, reject) => {
        worker.once('error', reject)
        worker.once('message', resolve)
      })
    },
  }
}
