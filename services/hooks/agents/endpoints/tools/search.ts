import * as Type from '../../../../../kernel/schema.ts'
import { EventSummary } from '../../../../../db/hooks/log/events.ts'
import { nullable, Timestamp } from '../../../../../db/sql-file.ts'
import {
  READ_ONLY,
  CallError,
  defineTool,
  toolValue,
  type Tool,
} from '../../../../../kernel/mcp/server.ts'
import { stepsOf } from '../../../../../kernel/json.ts'
import { validateTexts } from '../../../../../kernel/validate.ts'
import { findEvents } from '../../../log/events/events.ts'
import { EventQuery, MAX_SEARCH_LENGTH, memberFilter } from '../../../log/events/filter.ts'
import { withBeginnings } from '../../../log/events/previews.ts'
import { filterInput, UNTRUSTED } from './arguments.ts'
import type { ToolParts } from './parts.ts'

const DEFAULT_LIMIT = 20
/** Of larger numbers a JSON reader may have changed the last digits. */
const SAFE = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
const MemberValue = Type.Union([Type.String(), Type.Number(SAFE), Type.Boolean()])
const Members = Type.Unsafe<Readonly<Record<string, Type.Static<typeof MemberValue>>>>(
  Type.Object(
    {},
    {
      minProperties: 1,
      additionalProperties: MemberValue,
      description:
        'Members of the JSON payload by their paths, all of which must have these values: ' +
        '{"data.object.id": "evt_1", "items.0.sku": "a"}. Steps between dots, a dot within one ' +
        'as \\.; a number for a place in an array; the whole value counts, a number also as text. Payloads over 1 MiB ' +
        'are not searched',
    },
  ),
)

const FoundEvent = Type.Object({
  ...EventSummary.properties,
  preview: nullable(
    Type.String({ description: 'The beginning of the payload; null when it is not text' }),
  ),
})

/** `search_webhook_events`: the search of the log, with the beginning of each payload. */
export function searchTool({ db, clock }: ToolParts): Tool {
  return defineTool({
    name: 'search_webhook_events',
    title: 'Search webhook payloads',
    description:
      'Finds received webhooks by what is in their payloads or headers: text, members of the ' +
      'JSON, a header; at least one of them. Newest first, with the beginning of each payload. ' +
      'A call looks through events for about two seconds, a few more when others search: it ' +
      'may find few events or none. Pass next_cursor as cursor to go on with older ones; it is ' +
      'null once all were searched. searched_to says how far back a call came.',
    input: {
      members: Type.Optional(Members),
      ...filterInput,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: DEFAULT_LIMIT })),
    },
    output: Type.Object({
      events: Type.Array(FoundEvent),
      next_cursor: nullable(Type.String()),
      searched_to: nullable(Timestamp),
    }),
    annotations: READ_ONLY,
    async call({ members, limit = DEFAULT_LIMIT, ...filters }, call) {
      if (members === undefined && filters.text === undefined && filters.header === undefined) {
        const problem = 'Give text, members or header; list_webhook_events lists all events.'
        throw new CallError('invalid_argument', problem)
      }
      const json = memberLines(members ?? {})
      const texts: Readonly<Record<string, unknown>> = { ...filters, limit, json }
      const query = validateTexts(EventQuery, (name) => texts[name]?.toString())
      const { events, next_cursor, searchedTo } = await findEvents(db, clock, query, call)
      const found = await withBeginnings(db, events)
      return toolValue({ events: found, next_cursor, searched_to: searchedTo }, UNTRUSTED)
    },
  })
}

/** The members as the log's filter has them. */
function memberLines(members: Type.Static<typeof Members>): string {
  const lines = Object.entries(members).map(([path, value]) => {
    const line = memberFilter(stepsOf(path), JSON.stringify(value))
    if (line !== null) return line
    const steps = 'steps between dots'
    const problem = `members may have paths such as data.object.id (${steps}), and short values`
    throw new CallError('invalid_argument', `${problem} on one line.`)
  })
  const text = lines.join('\n')
  if (text.length <= MAX_SEARCH_LENGTH) return text
  const most = `${MAX_SEARCH_LENGTH} characters at most`
  throw new CallError('invalid_argument', `members may have ${most}, paths and values together.`)
}
