import Type from 'typebox'
import { EventSummary } from '../../../db/hooks/events.ts'
import { nullable } from '../../../db/sql-file.ts'
import {
  type Call,
  type Resource,
  type Tool,
  type ToolResult,
  defineTool,
  toolValue,
} from '../../../kernel/mcp/server.ts'
import { createShared } from '../../../kernel/single-flight.ts'
import { validateTexts } from '../../../kernel/validate.ts'
import { EventDetail, readEventStart } from '../event-detail.ts'
import { eventCursor, LogQuery, MAX_SEARCH_LENGTH } from '../event-filter.ts'
import { findEvents, listNewest } from '../events.ts'
import type { SendReplay } from '../replays.ts'
import { failure, READ_ONLY, UNTRUSTED, type ToolOptions } from './options.ts'

/** Bytes of a payload in a result: models pay for each of them. */
const MAX_PAYLOAD = 64 * 1024
const RECENT = 50

const EventId = Type.Integer({
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
  maxLength: MAX_SEARCH_LENGTH,
  description:
    'Text that stands in the first MiB of the payload, exactly so; upper and lower case differ',
})
const PayloadMember = Type.String({
  minLength: 1,
  maxLength: MAX_SEARCH_LENGTH,
  description:
    'PATH=VALUE of a member of the JSON payload, such as data.object.id=evt_1: steps between ' +
    'dots, a number for a place in an array; the whole value counts; payloads over 1 MiB have none',
})

/** `list_webhook_events`: the log, newest first, page by page. */
export function listTool({ db, ingest, clock }: ToolOptions): Tool {
  const share = createShared<ToolResult>({ version: () => ingest.commits, elapsed: clock.elapsed })

  async function list(args: object, call: Call): Promise<ToolResult> {
    const given = new Map<string, unknown>(Object.entries(args))
    const query = validateTexts(LogQuery, (name) =>
      given.has(name) ? String(given.get(name)) : undefined,
    )
    const { events, next } = await findEvents(db, clock, query, call)
    const next_cursor = next === null ? null : eventCursor(next)
    return toolValue({ events, next_cursor }, UNTRUSTED)
  }

  return defineTool({
    name: 'list_webhook_events',
    title: 'List webhook events',
    description:
      'Lists received webhooks, newest first, without their payloads. ' +
      'Pass next_cursor as cursor to go on; it is null on the last page. With text or json a call ' +
      'looks through payloads for about two seconds, a few more when others search: a page may ' +
      'then have few events or none and a next_cursor that goes on with older ones.',
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
      // A search takes its time: waiting for the search of another client first would double that.
      const searches = args.text !== undefined || args.json !== undefined
      const work = (): Promise<ToolResult> => list(args, call)
      return searches ? work() : share(JSON.stringify(args), work)
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
      `Of a payload over ${MAX_PAYLOAD} bytes only the beginning is given; ` +
      `payload_omitted_bytes says how much is left out. ${UNTRUSTED}`,
    input: Type.Object({ id: EventId }, { additionalProperties: false }),
    output: Type.Object({
      ...EventDetail.properties,
      payload_omitted_bytes: Type.Integer({ minimum: 0 }),
    }),
    annotations: READ_ONLY,
    async call({ id }) {
      const { event, omittedBytes } = await readEventStart(db, id, MAX_PAYLOAD)
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
      const events = await listNewest(db, RECENT)
      return { uri, mimeType, text: JSON.stringify({ notice: UNTRUSTED, events }) }
    },
  }
}

/** `replay_webhook_event`: only on an endpoint that was made for it. */
export function replayTool(replay: SendReplay): Tool {
  return defineTool({
    name: 'replay_webhook_event',
    title: 'Replay a webhook event',
    description:
      'Sends the stored bytes of an event to a target again, or to the default target of the ' +
      'settings. Private and local addresses are refused unless an operator allowed them.',
    input: Type.Object(
      {
        id: EventId,
        target_url: Type.Optional(
          Type.String({ maxLength: 2_048, description: 'http:// or https:// URL to post to' }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      id: Type.Integer(),
      target_url: Type.String(),
      delivered: Type.Boolean(),
      response_status: Type.Integer(),
      response_ms: Type.Integer(),
    }),
    annotations: {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    },
    async call({ id, target_url }) {
      const { target, outcome, status, ms, detail } = await replay(id, target_url)
      if (status === null) return failure('replay_failed', `Not delivered: ${detail ?? ''}.`)
      const delivered = outcome === 'delivered'
      const response = { response_status: status, response_ms: ms }
      return toolValue({ id, target_url: target, delivered, ...response })
    },
  })
}
