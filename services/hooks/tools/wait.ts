import Type from 'typebox'
import { eventQueries, EventSummary } from '../../../db/hooks/events.ts'
import { nullable } from '../../../db/sql-file.ts'
import { defineTool, toolValue, type Call, type Tool } from '../../../kernel/mcp/server.ts'
import { eventTest } from '../event-filter.ts'
import { EventType, ProviderName } from './events.ts'
import { READ_ONLY, UNTRUSTED, type ToolOptions } from './options.ts'

/** Below the minute after which clients give up. */
const MAX_S = 55
const DEFAULT_S = 30
const PROGRESS_MS = 5_000

type Matches = (event: EventSummary) => boolean

/** `wait_for_webhook_event`: the next event after the call, or none in time. */
export function waitTool(options: ToolOptions): Tool {
  return defineTool({
    name: 'wait_for_webhook_event',
    title: 'Wait for a webhook event',
    description:
      'Waits for the next webhook that is received after this call, and gives it without its ' +
      'payload; event is null when none came within timeout_s seconds. To miss nothing between ' +
      'two waits, call list_webhook_events with since = the id of the last event.',
    input: Type.Object(
      {
        provider: Type.Optional(ProviderName),
        event_type: Type.Optional(EventType),
        timeout_s: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_S, default: DEFAULT_S })),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({ event: nullable(EventSummary) }),
    annotations: { ...READ_ONLY, idempotentHint: false },
    streams: true,
    async call({ provider, event_type, timeout_s = DEFAULT_S }, call) {
      const matches = eventTest(provider ?? null, event_type ?? null) ?? (() => true)
      const event = await nextEvent(options, call, timeout_s, matches)
      return toolValue({ event: event ?? null }, UNTRUSTED)
    },
  })
}

/**
 * The first matching event stored after now. Undefined when the time is over, when the client is gone,
 * and when the program stops.
 */
async function nextEvent(
  { db, stream, clock }: ToolOptions,
  { gone, progress }: Call,
  seconds: number,
  matches: Matches,
): Promise<EventSummary | undefined> {
  const { promise, resolve } = Promise.withResolvers<EventSummary | undefined>()
  const over = (): void => resolve(undefined)
  const early: EventSummary[] = []
  let check = (events: readonly EventSummary[]): void => void early.push(...events)

  const signal = gone()
  const started = clock.elapsed()
  const { ready, stop } = stream.watch({ items: (events) => check(events), over })
  const stopTimer = clock.every(seconds * 1000, over)
  const stopProgress = clock.every(PROGRESS_MS, () => {
    const waited = Math.round((clock.elapsed() - started) / 1000)
    progress(waited, seconds, 'Waiting for an event')
  })
  signal.addEventListener('abort', over, { once: true })
  if (signal.aborted) over()
  try {
    await ready
    // The stream may still bring events from before the call.
    const { newest } = await eventQueries.streamBounds(db, { replayed: 0 })
    check = (events) => {
      const found = events.find((event) => event.id > newest && matches(event))
      if (found !== undefined) resolve(found)
    }
    check(early)
    return await promise
  } finally {
    stop()
    stopTimer()
    stopProgress()
    signal.removeEventListener('abort', over)
  }
}
