import * as Type from '../../../../../kernel/schema.ts'
import {
  READ_ONLY,
  CallError,
  type Call,
  type Resource,
  type Tool,
  type ToolResult,
  defineTool,
  toolValue,
} from '../../../../../kernel/mcp/server.ts'
import { createSingleFlight } from '../../../../../kernel/single-flight.ts'
import { validateTexts } from '../../../../../kernel/validate.ts'
import { EventDetail, readEventStart } from '../../../log/events/detail.ts'
import { EventQuery, MAX_SEARCH_LENGTH } from '../../../log/events/filter.ts'
import { EventList, findEvents, listNewest } from '../../../log/events/events.ts'
import { replayEvent } from '../../../send/replays/replays.ts'
import { EventId, filterInput, UNTRUSTED } from './arguments.ts'
import { partLinks, partsNotice } from './payload.ts'
import type { ToolParts } from './parts.ts'

/** Bytes of a payload in a result: models pay for each of them. */
const MAX_PAYLOAD = 64 * 1024
const RECENT = 50

const PayloadMember = Type.String({
  minLength: 1,
  maxLength: MAX_SEARCH_LENGTH,
  description:
    'PATH=VALUE of a member of the JSON payload, such as data.object.id=evt_1: steps between ' +
    'dots, a number for a place in an array; the whole value counts; payloads over 1 MiB ' +
    'are not searched; one line for each member',
})

/** `list_webhook_events`: the log, newest first, page by page. */
export function listTool({ db, ingest, clock }: ToolParts): Tool {
  const share = createSingleFlight<ToolResult>({
    version: () => ingest.commits,
    elapsed: clock.elapsed,
  })

  async function list(args: Readonly<Record<string, string | number | boolean>>, call: Call) {
    const query = validateTexts(EventQuery, (name) => args[name]?.toString())
    const { events, next_cursor } = await findEvents(db, clock, query, call)
    return toolValue({ events, next_cursor }, UNTRUSTED)
  }

  return defineTool({
    name: 'list_webhook_events',
    title: 'List webhook events',
    description:
      'Lists received webhooks, newest first, without their payloads. ' +
      'Pass next_cursor as cursor to go on; it is null on the last page. With text, json, ' +
      'header or verified a call looks through events for about two seconds, a few more when ' +
      'others search: a page may then have few events or none and a next_cursor that goes on ' +
      'with older ones.',
    input: {
      ...filterInput,
      json: Type.Optional(PayloadMember),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
    },
    output: EventList,
    annotations: READ_ONLY,
    call(args, call) {
      // A search takes seconds; waiting for another client's search first would double that.
      const { text, json, header, verified } = args
      const searches = [text, json, header, verified].some((filter) => filter !== undefined)
      if (searches) return list(args, call)
      return share(JSON.stringify(args), () => list(args, call))
    },
  })
}

/** `get_webhook_event`: one event with its headers and the beginning of its payload. */
export function getTool({ db }: ToolParts): Tool {
  return defineTool({
    name: 'get_webhook_event',
    title: 'Get a webhook event',
    description:
      'Gets one received webhook with its headers (secrets are redacted) and its payload. ' +
      'readable is there where the payload is a form, compressed or of another charset: the ' +
      'same as JSON or text. ' +
      `Of a payload over ${MAX_PAYLOAD} bytes only the beginning is given; ` +
      'payload_omitted_bytes says how much is left out, and links name the resources that ' +
      `have it all. ${UNTRUSTED}`,
    input: { id: EventId },
    output: Type.Object({
      ...EventDetail.properties,
      payload_omitted_bytes: Type.Integer({ minimum: 0 }),
    }),
    annotations: READ_ONLY,
    async call({ id }, { canLink }) {
      const start = await readEventStart(db, id, MAX_PAYLOAD)
      const { event, omittedBytes: omitted, isReadingCut } = start
      const detail = { ...event, payload_omitted_bytes: omitted }
      const notice = isReadingCut ? `${UNTRUSTED} The end of readable is left out.` : UNTRUSTED
      if (omitted === 0) return toolValue(detail, notice)
      const cut = `${omitted} bytes at the end of the payload are left out. ${partsNotice(event)}`
      return toolValue(detail, `${notice} ${cut}`, canLink ? partLinks(event) : [])
    },
  })
}

/** `gatehouse://events/recent`: the newest events, for clients that attach resources. */
export function recentResource({ db }: ToolParts): Resource {
  const uri = 'gatehouse://events/recent'
  const mimeType = 'application/json'
  return {
    uri,
    name: 'recent-events',
    title: 'Recent webhook events',
    description:
      `The ${RECENT} newest webhook events, newest first, without payloads. ` + UNTRUSTED,
    mimeType,
    read: async () => {
      const events = await listNewest(db, RECENT)
      return [{ uri, mimeType, text: JSON.stringify({ notice: UNTRUSTED, events }) }]
    },
  }
}

/** `replay_webhook_event`: only on an endpoint that was made for it. */
export function replayTool(hooks: ToolParts): Tool {
  return defineTool({
    name: 'replay_webhook_event',
    title: 'Replay a webhook event',
    description:
      'Sends the stored bytes of an event to a target again, or to the default target of the ' +
      'settings. Private and local addresses are refused unless an operator allowed them.',
    input: {
      id: EventId,
      target_url: Type.Optional(
        Type.String({ maxLength: 2_048, description: 'http:// or https:// URL to post to' }),
      ),
    },
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
    async call({ id, target_url }, { actor }) {
      const replay = await replayEvent({ ...hooks, actor }, id, target_url)
      const { status, detail } = replay
      if (status === null) throw new CallError('replay_failed', `Not delivered: ${detail ?? ''}.`)
      return toolValue({
        id,
        target_url: replay.target,
        delivered: replay.outcome === 'delivered',
        response_status: status,
        response_ms: replay.ms,
      })
    },
  })
}
