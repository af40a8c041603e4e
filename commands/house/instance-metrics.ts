import type { Worker } from 'node:cluster'
import { createMetrics, joinMetrics } from '../../kernel/metrics.ts'
import type { FromInstance, ToInstance } from './instance.ts'

/** An instance that does not answer is left out. */
const ANSWER_MS = 1_000

/** A page of metrics that an instance was asked for. */
interface Page {
  texts: string[]
  /** Those that have not answered. */
  silent: Set<Worker>
  complete: () => void
}

/** Collects the metrics of all instances for the one that was asked for them. */
export function openCollection(workers: () => readonly Worker[]) {
  const pages = new Map<number, Page>()
  let calls = 0

  async function collect(): Promise<string> {
    calls += 1
    const call = calls
    const asked = workers()
    const { promise, resolve } = Promise.withResolvers<void>()
    const page: Page = { texts: [], silent: new Set(asked), complete: resolve }
    pages.set(call, page)
    for (const worker of asked) tell(worker, { kind: 'render metrics', call })
    const late = setTimeout(resolve, ANSWER_MS)
    await promise
    clearTimeout(late)
    pages.delete(call)
    return joinMetrics([ownMetrics(page), ...page.texts])
  }

  return {
    /** Takes what an instance says of metrics. */
    hear(worker: Worker, message: Exclude<FromInstance, { kind: 'ready' }>) {
      const { call } = message
      if (message.kind === 'asks for metrics') {
        void collect().then((text) => tell(worker, { kind: 'metrics of all', call, text }))
        return
      }
      const page = pages.get(call)
      page?.texts.push(message.text)
      page?.silent.delete(worker)
      if (page?.silent.size === 0) page.complete()
    },
  }
}

/** What the process that starts the instances says itself. */
function ownMetrics({ texts, silent }: Page) {
  const metrics = createMetrics()
  metrics.gauge('gatehouse_instances', 'Processes that share the listeners.', () => [
    [{ state: 'answered' }, texts.length],
    [{ state: 'silent' }, silent.size],
  ])
  return metrics.render()
}

function tell(worker: Worker, message: ToInstance) {
  if (worker.isConnected()) worker.send(message)
}
