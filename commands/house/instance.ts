import cluster from 'node:cluster'
import type { LogFields } from '../../kernel/log.ts'
import { NUMBER_VARIABLE } from '../frame/configuration.ts'
import type { Announcer } from './service-manager.ts'

/** What an instance tells the process that has started it. */
export type FromInstance =
  | { kind: 'ready'; addresses: string }
  /** It is asked for the metrics of all instances. */
  | { kind: 'asks for metrics'; call: number }
  | { kind: 'metrics'; call: number; text: string }

/** What that process tells an instance: to render its own metrics, or those of all of them. */
export type ToInstance =
  | { kind: 'render metrics'; call: number }
  | { kind: 'metrics of all'; call: number; text: string }

/** The number of this process among the instances that share listeners; undefined if it is alone. */
export function instanceNumber(): string | undefined {
  return cluster.isWorker ? process.env[NUMBER_VARIABLE] : undefined
}

/** What each line of its log has; undefined if it is alone. */
export function instanceFields(): LogFields | undefined {
  const instance = instanceNumber()
  return instance === undefined ? undefined : { instance }
}

/** This process as one of several instances. */
export type Instance = ReturnType<typeof openInstance>

/** Begins to speak with the process that has started this one (`serveInstances`). */
export function openInstance(number: string) {
  const asked = new Map<number, (text: string) => void>()
  let calls = 0
  let renderOwn = () => ''
  function tell(message: FromInstance) {
    process.send?.(message)
  }
  process.on('message', (message: ToInstance) => {
    const { call } = message
    if (message.kind === 'render metrics') {
      return tell({ kind: 'metrics', call, text: renderOwn() })
    }
    asked.get(call)?.(message.text)
    asked.delete(call)
  })
  const announcer: Announcer = {
    ready: (addresses) => tell({ kind: 'ready', addresses }),
    stopping: () => undefined,
  }
  return {
    number,
    announcer,
    /** Gives the function that renders the metrics of all instances, by one that renders its own. */
    shareMetrics(render: () => string): () => Promise<string> {
      renderOwn = render
      return async () => {
        const { promise, resolve } = Promise.withResolvers<string>()
        calls += 1
        asked.set(calls, resolve)
        tell({ kind: 'asks for metrics', call: calls })
        return await promise
      }
    },
  }
}
