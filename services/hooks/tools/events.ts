import Type from 'typebox'
import { listEvents } from '../../../db/hooks/events.ts'
import { EventSummary } from '../../../db/hooks/rows.ts'
import { nullable } from '../../../db/rows.ts'
import {
  type Call,
  type Resource,
  type Tool,
  type ToolResult,
  defineTool,
  toolValue,
} from '../../../kernel/mcp/server.ts'
import { createShared } from '../../../kernel/single-flight.ts'
import { EventDetail, readEventStart } from '../event-detail.ts'
import { findEvents, TOO_MANY_SEARCHES } from '../find-events.ts'
import { EVERY_EVENT, eventCursor, LONGEST_SEARCH, readLogQuery } from '../log-filter.ts'
import { failure, READ_ONLY, UNTRUSTED, type ToolOptions } from './options.ts'

/** The most of a payload that goes into a result, in bytes: models pay for each of them. */
const PAYLOAD_LIMIT = 64 * 1024
const RECENT = 50

export const EventId = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Id of an event',
})
export const ProviderName = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'code_host, payments, chat, generic:NAME or queue:NAME; see list_providers',
})
export const EventType = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'Exactly this type, as the sender names it',
})

const PayloadText = Type.String({
  minLength: 1,
  maxLength: LONGEST_SEARCH,
  description:
    'Text that stands in the first MiB of the payload, exactly so; upper and lower case differ',
})
const PayloadMember = Type.String({
  minLength: 1,
  maxLength: LONGEST_SEARCH,
  description:
    'PATH=VALUE of a member of the JSON payload, such as data.object.id=evt_1: steps between ' +
    'dots, a number for a place in an array; the whole value counts; payloads over 1 MiB have none',
})

/** `list_webhook_events`: the log, newest first, page by page. */
export function listTool({ db, ingest, clock }: ToolOptions): Tool {
  const shared = createShared<ToolResult>({ version: () => ingest.commits, elapsed: clock.elapsed })

  async function list(args: object, call: Call): Promise<ToolResult> {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(args)) query.set(name, String(value))
    const wanted = readLogQuery(query)
    if (typeof wanted === 'string') return failure('invalid_argument', wanted)
    const { filter, payload, limit } = wanted
    const page = await findEvents(db, clock, filter, payload, limit, call)
    if (page === 'late') return failure('rate_limited', TOO_MANY_SEARCHES)
    const { events, next } = page
    const next_cursor = next === null ? null : eventCursor(next)
    return toolValue({ events, next_cursor }, UNTRUSTED)
  }

  return defineTool({
    name: 'list_webhook_events',
    title: 'List webhook events',
    description:
      'Lists received webhooks, newest first, without their payloads. ' +
      'Pass next_cursor as cursor to go on; it is null on the last page. With text or json a call ' +
      'looks through payloads for about two seconds, a few more when others search: a page may then have few events or ' +
      'none and a next_cursor that goes on with older ones.',
    input: Type.Object(
      {
        provider: Type.Optional(ProviderName),
        event_type: Type.Optional(EventType),
        text: Type.Optional(PayloadText),
        json: Type.Optional(PayloadMember),
        since: Type.Optional(
          Type.Union([Type.String({ minLength: 1 }), Type.Integer({ minimum: 0 })], {
            description: 'Lower bound: a time such as 2026-01-31T12:00:00Z, or an event id',
          }),
        ),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
        cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      events: Type.Array(EventSummary),
      next_cursor: nullable(Type.String()),
    }),
    annotations: READ_ONLY,
    call(args, call) {
      // A search may take its time: to wait for somebody else's before one's own would double that.
      const searches = args.text !== undefined || args.json !== undefined
      const work = (): Promise<ToolResult> => list(args, call)
      return searches ? work() : shared(JSON.stringify(args), work)
    },
  })
}

/** `get_webhook_event`: one event with its headers and payload, as far as it may go out. */
export function getTool({ db }: ToolOptions): Tool {
  return defineTool({
    name: 'get_webhook_event',
    title: 'Get a webhook event',
    description:
      'Gets one received webhook with its headers (secrets are redacted) and its payload. ' +
      `Of a payload over ${PAYLOAD_LIMIT} bytes only the beginning is given; ` +
      `payload_omitted_bytes says how much is left out. ${UNTRUSTED}`,
    input: Type.Object({ id: EventId }, { additionalProperties: false }),
    output: Type.Object({
      ...EventDetail.properties,
      payload_omitted_bytes: Type.Integer({ minimum: 0 }),
    }),
    annotations: READ_ONLY,
    async call({ id }) {
      const found = await readEventStart(db, id, PAYLOAD_LIMIT)
      if (found === undefined) {
        const message = `There is no event ${id}; retention may have removed it.`
        return failure('not_found', message)
      }
      const { event, omittedBytes } = found
      const detail = { ...event, payload_omitted_bytes: omittedBytes }
      const cut =
        omittedBytes > 0 ? ` ${omittedBytes} bytes at the end of the payload are left out.` : ''
      return toolValue(detail, UNTRUSTED + cut)
    },
  })
}

/** `gatehouse://events/recent`: the newest events, for clients that attach resources. */
export function recentResource({ db }: ToolOptions): Resource {
  const uri = 'gatehouse://events/recent'
  const mimeType = 'application/json'
  return {
    uri,
    name: 'recent-events',
    title: 'Recent webhook events',
    description: `The ${RECENT} newest webhook events, newest first, without payloads. ${UNTRUSTED}`,
    mimeType,
    read: async () => {
      const events = await listEvents(db, EVERY_EVENT, RECENT)
      return { uri, mimeType, text: JSON.stringify({ notice: UNTRUSTED, events }) }
    },
  }
}
