import { isObject, objectsOf, parseObject, type JsonObject } from '../../../kernel/json.ts'

/** What an agent wants recorded, as it wrote it: the tools that record it look at each. */
export interface Report {
  readonly events: readonly JsonObject[]
  readonly memories: readonly JsonObject[]
  readonly escalate: JsonObject | undefined
}

const NOTHING: Report = { events: [], memories: [], escalate: undefined }
const KEYS = ['events', 'memories', 'escalate']
const MOST = 50
const FENCE = '\n```'

/** How an agent is told of the report. */
export const REPORT_FORM = `End your last message with one line of JSON, and nothing after it:
{"events": [{"level": "info, warning or critical", "service": "its name", "message": "what is wrong or has changed"}], "memories": [{"category": "timing, dependency, behavior, remediation or maintenance", "service": "its name", "observation": "what later sessions should know"}], "escalate": null}
Both lists may be empty, and an entry may be without a service. When the next tier has to go on, "escalate" is {"reason": "why, in one sentence", "findings": "all that you found"}.`

/** Splits an agent's last message: what people read, and the report when there is one. */
export function readReport(message: string): { readonly text: string; readonly report: Report } {
  for (const { from, json } of endingsOf(message.trimEnd())) {
    const report = parseReport(json)
    if (report !== undefined) return { text: message.slice(0, from).trim(), report }
  }
  return { text: message.trim(), report: NOTHING }
}

/** The last line, and the block at the end: JSON has no line ends in its texts, so no fence either. */
function endingsOf(message: string): readonly { readonly from: number; readonly json: string }[] {
  const line = message.lastIndexOf('\n') + 1
  const last = { from: line, json: message.slice(line) }
  if (!message.endsWith(FENCE)) return [last]
  const from = `\n${message}`.lastIndexOf(FENCE, message.length - FENCE.length)
  if (from < 0) return [last]
  const block = message.slice(from + FENCE.length - 1, -FENCE.length)
  return [{ from, json: block.replace(/^json/, '') }]
}

/** Undefined if the text is not a report. */
function parseReport(text: string): Report | undefined {
  const value = parseObject(text)
  if (value === undefined || !KEYS.some((key) => key in value)) return undefined
  const { events, memories, escalate } = value
  return {
    events: objectsOf(events).slice(0, MOST).map(withoutNulls),
    memories: objectsOf(memories).slice(0, MOST).map(withoutNulls),
    escalate: isObject(escalate) ? escalate : undefined,
  }
}

function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}
