import * as Type from '../../../../kernel/schema.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import {
  memberAt,
  objectsOf,
  parseObject,
  stringOf,
  type JsonObject,
} from '../../../../kernel/json.ts'
import { get } from '../../../../kernel/net/outbound.ts'
import { headerSecrets, type Source } from '../../watch/inventory/reads.ts'
import { createRedact, redactLine, type Redact } from '../../redact.ts'
import { LineCount, linesReply, Minutes } from './lines.ts'
import { findSource } from './named.ts'
import {
  describeResult,
  describeWarnings,
  MAX_SERIES,
  newestLines,
  rangeOf,
  type Range,
} from './source-answers.ts'
import { defineTool, done, Text, type ToolContext } from './tool.ts'

/** Bytes of an answer. It is JSON, so a longer one can't be read. */
const MAX_ANSWER = 4 * 1024 * 1024
const DEFAULT_TIMEOUT_S = 20
/** Characters of an error. */
const MAX_ERROR = 500
const DEFAULT_MINUTES = 60
const DEFAULT_LINES = 100

const SourceName = Type.Optional(Text(200, 'Name of the source, if there are several'))

export const queryMetricsTool = defineTool({
  name: 'query_metrics',
  description:
    'Asks a Prometheus of the inventory by PromQL: for the values now, or with "minutes" for ' +
    'how they went.',
  tier: 2,
  effect: 'reads',
  takes: { query: Text(4_000, 'PromQL'), minutes: Minutes, source: SourceName },
  async run({ query, minutes, source: named }, context) {
    const source = await findSource(context, 'prometheus', named)
    const now = context.clock.now()
    const range = minutes === undefined ? undefined : rangeOf(now, minutes)
    const time = String(Math.floor(now.getTime() / 1_000))
    const params = { query, limit: String(MAX_SERIES), ...(range ? rangeParams(range) : { time }) }
    const path = range === undefined ? '/api/v1/query' : '/api/v1/query_range'
    const { answer, redact } = await ask(source, path, params, context)
    const warnings = describeWarnings(answer, redact)
    return done(`${describeResult(answer['data'], range, redact)}${warnings}`)
  },
})

export const queryLogsTool = defineTool({
  name: 'query_logs',
  description:
    'Asks a Loki of the inventory by LogQL for the newest lines, or for metrics: ' +
    'of the last hour, or of so many "minutes".',
  tier: 2,
  effect: 'reads',
  takes: {
    query: Text(4_000, 'LogQL, such as {app="shop"} |= "error"'),
    minutes: Minutes,
    lines: LineCount,
    source: SourceName,
  },
  async run({ query, minutes = DEFAULT_MINUTES, lines = DEFAULT_LINES, source }, context) {
    const loki = await findSource(context, 'loki', source)
    const range = rangeOf(context.clock.now(), minutes)
    const params = {
      query,
      limit: String(lines),
      direction: 'backward',
      step: `${range.step}s`,
      // Loki reads whole numbers as nanoseconds.
      start: `${range.start}000000000`,
      end: `${range.end}000000000`,
    }
    const { answer, redact } = await ask(loki, '/loki/api/v1/query_range', params, context)
    const { data } = answer
    if (memberAt(data, 'resultType') !== 'streams') {
      return done(`${describeResult(data, range, redact)}${describeWarnings(answer, redact)}`)
    }
    const newest = newestLines(objectsOf(memberAt(data, 'result')), lines, redact)
    return linesReply({ lines: newest, contains: undefined, most: lines, isCut: false })
  },
})

function rangeParams({ start, end, step }: Range) {
  return { start: String(start), end: String(end), step: String(step) }
}

/** Sends a query. Throws a Fault with what the source says of a query that it does not take. */
async function ask(
  source: Source,
  path: string,
  params: Readonly<Record<string, string>>,
  { redact: redactKnown, job: { signal } }: ToolContext,
): Promise<{ answer: JsonObject; redact: Redact }> {
  const secrets = headerSecrets(source)
  const hide = createRedact(() => secrets)
  // A source may show what it was sent, in an error or in its own log.
  const redact: Redact = (text) => redactKnown(hide(text))
  const { url, headers, timeout_s = DEFAULT_TIMEOUT_S } = source
  const base = url.endsWith('/') ? url.slice(0, -1) : url
  const result = await get({
    url: new URL(`${base}${path}?${new URLSearchParams(params)}`),
    headers: { accept: 'application/json', 'user-agent': 'gatehouse-agent', ...headers },
    timeoutMs: timeout_s * 1_000,
    trusted: true,
    answerBytes: MAX_ANSWER,
    signal,
  })
  if (result.kind !== 'answered') {
    throw badRequest(`"${source.name}" can't be asked: ${redact(result.reason)}`)
  }
  const { status, body } = result
  if (body.length >= MAX_ANSWER) {
    throw badRequest(`The answer is over ${MAX_ANSWER >> 20} MiB: narrow the query.`)
  }
  const text = body.toString('utf8')
  const answer = parseObject(text)
  if (status === 200 && answer?.['status'] === 'success') return { answer, redact }
  const said = stringOf(answer?.['error']) ?? text
  throw badRequest(`"${source.name}" answered ${status}: ${redactLine(said, MAX_ERROR, redact)}`)
}
