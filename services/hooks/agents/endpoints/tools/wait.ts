import * as Type from '../../../../../kernel/schema.ts'
import { EventSummary, eventQueries } from '../../../../../db/hooks/log/events.ts'
import { nullable } from '../../../../../db/sql-file.ts'
import {
  READ_ONLY,
  defineTool,
  toolValue,
  type Call,
  type Tool,
} from '../../../../../kernel/mcp/server.ts'
import { eventTest } from '../../../log/events/filter.ts'
import { EventType, ProviderName, UNTRUSTED } from './arguments.ts'
import type { ToolParts } from './parts.ts'

/** Below the minute after which clients give up. */
const MAX_S = 55
const DEFAULT_S = 30
const PROGRESS_MS = 5_000

const POSITION = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
/** As the `gap` message of the live stream has it. */
const Gap = Type.Object(
  { requested: Type.Integer(), oldest: Type.Integer(), skipped: Type.Integer() },
  { description: 'Events after the cursor that are no longer stored' },
)
type Gap = Type.Static<typeof Gap>

/** `wait_for_webhook_event`: the next event after the call or after a cursor, or none in time. */
export function waitTool(hooks: ToolParts): Tool {
  return defineTool({
    name: 'wait_for_webhook_event',
    title: 'Wait for a webhook event',
    description:
      'Waits for the next webhook that is received after this call, and gives it without its ' +
      'payload; event is null when none came within timeout_s seconds. To miss nothing between ' +
      'two waits, pass next_cursor as cursor: an event that came meanwhile is given at once.',
    input: {
      provider: Type.Optional(ProviderName),
      event_type: Type.Optional(EventType),
      timeout_s: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_S, default: DEFAULT_S })),
      cursor: Type.Optional(
        Type.Integer({
          ...POSITION,
          description:
            'next_cursor of the wait before, or an event id: gives the first event after it, ' +
            'also one that was received before this call; 0 begins with the oldest event',
        }),
      ),
    },
    output: Type.Object({
      event: nullable(EventSummary),
      next_cursor: Type.Integer(POSITION),
      gap: nullable(Gap),
    }),
    annotations: { ...READ_ONLY, idempotentHint: false },
    streams: true,
    async call({ provider, event_type, timeout_s = DEFAULT_S, cursor }, call) {
      const matches = eventTest(provider, event_type) ?? (() => true)
      const { after, gap } = await startOf(hooks, cursor)
      const { event, position } = await nextEvent(hooks, call, timeout_s, after, matches)
      return toolValue({ event: event ?? null, next_cursor: position, gap }, UNTRUSTED)
    },
  })
}

/** The position after which a wait looks for events, and which events it can't give. */
async function startOf({ db }: ToolParts, cursor: number | undefined) {
  const { newest, pruned_through } = await eventQueries.streamBounds(db, { replayed: 0 })
  if (cursor === undefined) return { after: newest, gap: null }
  if (cursor > newest) {
    // The id is of another database: one that was restored from a backup has lost newer events.
    return { after: newest, gap: { requested: cursor, oldest: newest + 1, skipped: 0 } }
  }
  if (cursor >= pruned_through) return { after: cursor, gap: null }
  const skipped = pruned_through - cursor
  const gap: Gap = { requested: cursor, oldest: pruned_through + 1, skipped }
  return { after: pruned_through, gap }
}

/**
 * The first matching event above a position; the new position is its id. Without an event (the time
 * is over, the client is gone, or the program stops) the position is the last event that was
 * examined.
 */
async function nextEvent(
  { stream, clock }: ToolParts,
  { gone, progress }: Call,
  seconds: number,
  after: number,
  matches: (event: EventSummary) => boolean,
): Promise<{ event?: EventSummary; position: number }> {
  const over = new AbortController()
  const started = clock.elapsed()
  const stopTimer = clock.every(seconds * 1000, () => over.abort())
  const stopProgress = clock.every(PROGRESS_MS, () => {
    const waited = Math.round((clock.elapsed() - started) / 1000)
    progress(waited, seconds, 'Waiting for an event')
  })
  let position = after
  try {
    const end = AbortSignal.any([gone(), over.signal])
    for await (const { items } of stream.pages(after, end)) {
      const event = items.find(matches)
      if (event !== undefined) return { event, position: event.id }
      position = items.at(-1)?.id ?? position
    }
    return { position }
  } finally {
    stopTimer()
    stopProgress()
  }
}
