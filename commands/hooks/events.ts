import { constants } from 'node:buffer'
import * as Type from '../../kernel/schema.ts'
import { EventSummary } from '../../db/hooks/log/events.ts'
import { nullable } from '../../db/sql-file.ts'
import { sizeText } from '../../html/parts.ts'
import { parseJson } from '../../kernel/json.ts'
import { messageOf } from '../../kernel/log.ts'
import { fits, validateTexts } from '../../kernel/validate.ts'
import { accepted, integer, oneOf } from '../../kernel/variables.ts'
import { EventDetail } from '../../services/hooks/log/events/detail.ts'
import { EventQuery, ExportQuery } from '../../services/hooks/log/events/filter.ts'
import { apiClient, checkFrom, CLIENT_FLAGS, type ApiClient } from '../frame/api-client.ts'
import {
  command,
  fieldsOf,
  JSON_FLAG,
  text,
  readFields,
  UsageError,
  value,
  type Call,
  type ConfiguredTools,
} from '../frame/command.ts'
import { followEvents } from './follow.ts'
import { factLines, printRows } from '../frame/output.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100_000
/** Events of one page of the API. */
const PAGE = 200

export const ID = value('ID', 'the id of the event', accepted('the id of an event', readId))

export const FILTER_FLAGS = {
  provider: text('NAME', 'only events of this provider'),
  'event-type': text('TYPE', 'only events of this type; * stands for any characters'),
  since: text('TIME|ID', 'only events from this time or id on, or of the last 24h'),
  until: text('TIME|ID', 'only events before this time, or up to this id'),
  verified: value(
    'true|false',
    'only events whose signature was verified, or only others',
    oneOf('true', 'false'),
  ),
  text: text('TEXT', 'only events whose body has this text'),
  'json-member': text('PATH=VALUE', 'only events whose body has this value; a line for each'),
  header: text('NAME[=VALUE]', 'only events with this header'),
}

const LIST_FLAGS = {
  ...FILTER_FLAGS,
  limit: value(
    'N',
    `how many at most, ${DEFAULT_LIMIT} unless given`,
    integer({ min: 1, max: MAX_LIMIT }),
  ),
  follow: { summary: 'go on with each event that comes, a line each, until a signal' },
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
}

type ListCall = Call<Record<never, never>, typeof LIST_FLAGS>

/** Times are texts in JSON. */
const Listed = Type.Object({ ...EventSummary.properties, received_at: Type.String() })
type Listed = Type.Static<typeof Listed>
const Page = Type.Object({ events: Type.Array(Listed), next_cursor: nullable(Type.String()) })
const Detail = Type.Object({ ...EventDetail.properties, received_at: Type.String() })
/** More events were missed than the stream sends; `oldest` is the first that it sends. */
const Gap = Type.Object({
  requested: Type.Integer(),
  oldest: Type.Integer(),
  skipped: Type.Integer(),
})
type Gap = Type.Static<typeof Gap>

/** `gatehouse events …`: the log of a running server, over its API. */
export const commands = [
  command({
    name: 'events list',
    summary: 'list the events of a running server, newest first',
    flags: LIST_FLAGS,
    needs: 'configuration',
    check(call) {
      checkFrom(call)
      readQuery(call.flags)
      const { follow, text, 'json-member': json, header, verified, until } = call.flags
      const others = [text, json, header, verified, until]
      if (!follow || others.every((filter) => filter === undefined)) return
      throw new UsageError(NOT_FOLLOWED)
    },
    run: (call, tools) => (call.flags.follow ? follow(call, tools) : list(call, tools)),
  }),
  command({
    name: 'events show',
    summary: 'print an event with its headers and its payload',
    args: { id: ID },
    flags: { json: JSON_FLAG, ...CLIENT_FLAGS },
    needs: 'configuration',
    check: checkFrom,
    async run({ args: { id }, flags }, { config, output }) {
      const event = await apiClient(flags, config).json(Detail, `/api/v1/events/${id}`, {
        // A payload may have 100 MiB, and its JSON more.
        maxBytes: constants.MAX_STRING_LENGTH,
      })
      if (flags.json) output.out(JSON.stringify(event))
      else for (const line of linesOf(event)) output.out(line)
    },
  }),
  command({
    name: 'events payload',
    summary: 'print the payload of an event, byte for byte',
    args: { id: ID },
    flags: CLIENT_FLAGS,
    needs: 'configuration',
    check: checkFrom,
    async run({ args: { id }, flags }, { config, output }) {
      const response = await apiClient(flags, config).open(`/api/v1/events/${id}/payload`)
      for await (const chunk of response as AsyncIterable<Buffer>) output.bytes(chunk)
    },
  }),
]

const NOT_FOLLOWED =
  '--follow takes no --text, --json-member, --header, --verified and --until; ' +
  'forward has the first two'

async function list({ flags }: ListCall, tools: ConfiguredTools): Promise<undefined> {
  const { json, limit = DEFAULT_LIMIT } = flags
  const client = apiClient(flags, tools.config)
  const events = await listEvents(client, readQuery(flags), limit)
  printRows(tools.output, json, events, {
    ID: ({ id }) => String(id),
    RECEIVED: ({ received_at }) => received_at,
    PROVIDER: ({ provider }) => provider,
    TYPE: ({ event_type }) => event_type ?? '-',
    TRUST: ({ trust_mode }) => trust_mode,
    SIZE: ({ payload_size }) => sizeText(payload_size),
  })
}

/** The newest events first of all, in the order in which they came; then each that comes. */
async function follow({ flags }: ListCall, tools: ConfiguredTools): Promise<undefined> {
  const { output, random, stopSignal } = tools
  const { json, limit = DEFAULT_LIMIT } = flags
  const stop = new AbortController()
  void stopSignal().then(() => stop.abort())
  const client = apiClient(flags, tools.config)
  const query = readQuery(flags)
  const print = (event: Listed) => output.out(json ? JSON.stringify(event) : lineOf(event))
  // What comes from here on is for the stream, which begins behind this event.
  const [newest] = await listEvents(client, new URLSearchParams(), 1)
  const after = newest?.id ?? 0
  const stored = await listEvents(client, query, limit)
  for (const event of stored.toReversed()) if (event.id <= after) print(event)
  const problem = (line: string) => output.err(line)
  for await (const message of followEvents({
    client,
    query,
    after,
    random,
    problem,
    stop: stop.signal,
  })) {
    const content = parseJson(message.data)
    if (message.event === 'event-received' && fits(Listed, content)) print(content)
    if (message.event === 'gap' && fits(Gap, content) && content.skipped > 0) {
      for (const event of await missedEvents(client, query, content, problem)) print(event)
    }
  }
}

/** The events that the stream has left out, oldest first; those that can't be had are named. */
async function missedEvents(
  client: ApiClient,
  query: URLSearchParams,
  { requested, oldest }: Gap,
  problem: (line: string) => void,
) {
  const asked = new URLSearchParams(query)
  const [since, until] = [requested + 1, oldest - 1]
  asked.set('since', String(since))
  asked.set('until', String(until))
  try {
    const events = await listEvents(client, asked, MAX_LIMIT)
    const [first] = events.slice(-1)
    if (events.length === MAX_LIMIT && first !== undefined) leftOut(since, first.id - 1)
    return events.toReversed()
  } catch (error) {
    problem(messageOf(error))
    leftOut(since, until)
    return []
  }

  function leftOut(from: number, to: number) {
    const command = `gatehouse events list --since ${from} --until ${to} --limit ${MAX_LIMIT}`
    problem(`up to ${to - from + 1} events are left out here; they are listed by: ${command}`)
  }
}

/** The newest events that fit, from as many pages as that takes. */
async function listEvents(client: ApiClient, query: URLSearchParams, limit: number) {
  const events: Listed[] = []
  const asked = new URLSearchParams(query)
  for (;;) {
    asked.set('limit', String(Math.min(PAGE, limit - events.length)))
    const page = await client.json(Page, `/api/v1/events?${asked}`)
    events.push(...page.events)
    if (page.next_cursor === null || events.length >= limit) return events
    asked.set('cursor', page.next_cursor)
  }
}

/** The filters, checked as the server will check them. */
export function readQuery(flags: Call<Record<never, never>, typeof FILTER_FLAGS>['flags']) {
  const query = new URLSearchParams(fieldsOf(ExportQuery, flags))
  readFields(() => validateTexts(EventQuery, (name) => query.get(name)))
  return query
}

function readId(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function lineOf({ id, received_at, provider, event_type, trust_mode, payload_size }: Listed) {
  const size = sizeText(payload_size)
  return [id, received_at, provider, event_type ?? '-', trust_mode, size].join('  ')
}

/** The facts of an event, its headers, and its payload decoded, where that is text. */
function linesOf(event: Type.Static<typeof Detail>) {
  const { headers, payload, payload_encoding, readable, ...facts } = event
  const sent = Object.entries(headers).map(([name, header]) => `${name}: ${header}`)
  const binary = `not text; its bytes: gatehouse events payload ${facts.id}`
  const text = readable ?? (payload_encoding === 'utf8' ? payload : binary)
  return [...factLines(facts), '', ...sent, '', text]
}
