import { Worker } from 'node:worker_threads'
import type { LoadOrder, LoadResult } from './load-worker.ts'

/** Runs a load of keep-alive connections in a thread of its own and gives what it measured. */
export function runLoad(order: LoadOrder): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./load-worker.ts', import.meta.url), { workerData: order })
    worker.on('message', (result: LoadResult) => {
      resolve(result)
      void worker.terminate()
    })
    worker.on('error', reject)
  })
}
