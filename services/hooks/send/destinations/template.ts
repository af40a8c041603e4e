import type { StoredEvent } from '../../../../db/hooks/log/events.ts'
import { memberAt, parseJson } from '../../../../kernel/json.ts'
import { previewOf } from '../../log/events/previews.ts'
import { unprocessable } from './form.ts'
import { presetOf, type Preset } from './presets.ts'

// A body made of an event: JSON with placeholders, such as {"text": "{{json.repository.name}}"}.

const MAX_TEMPLATE = 10_000
const MAX_PLACEHOLDERS = 100
/** Characters of a value: a longer one is cut. */
const MAX_VALUE = 500
/** Of a larger payload no member is read, as in the filters of the log. */
const MAX_PAYLOAD = 1024 * 1024

const NAMES = ['event_type', 'provider', 'id', 'received_at', 'title', 'summary'] as const
const JSON_PATH = /^json(?:\.[\w-]+)+$/
const KNOWN = `${NAMES.map((name) => `{{${name}}}`).join(', ')} and {{json.PATH}}`

/** A part of a template: a text as it is, or a placeholder within a string of JSON or outside. */
type Part = string | { name: string; inString: boolean }

/** What a placeholder stands for; a list, an object and what is missing are null. */
type Value = string | number | boolean | null

/** Throws 422 for a template that would not be JSON once it is filled, or asks for the unknown. */
export function checkTemplate(template: string | null, url: string): void {
  if (template === null) return
  if (template.length > MAX_TEMPLATE) throw wrong(`must have ${MAX_TEMPLATE} characters at most.`)
  const preset = presetOf(template)
  if (preset?.topicOf !== undefined && preset.topicOf(new URL(url)) === undefined) {
    const message = 'url must end with the topic for this template: https://ntfy.sh/TOPIC.'
    throw unprocessable(message, 'url')
  }
  if (preset !== undefined) return
  const parts = partsOf(template)
  const named = parts.filter((part) => typeof part !== 'string')
  if (named.length > MAX_PLACEHOLDERS) {
    throw wrong(`must have ${MAX_PLACEHOLDERS} placeholders at most.`)
  }
  const stranger = named.find(({ name }) => !isKnown(name))
  if (stranger !== undefined) {
    throw wrong(`has {{${stranger.name.slice(0, 100)}}}, which is not known: use ${KNOWN}.`)
  }
  if (parts.some((part) => typeof part === 'string' && part.includes('{{'))) {
    throw wrong('has {{ without }}.')
  }
  // A number, which can't be the name of a member.
  if (parseJson(fill(parts, () => 1)) === undefined) {
    throw wrong('must be JSON, or one of slack, discord, ntfy, teams.')
  }
}

function wrong(problem: string) {
  return unprocessable(`body_template ${problem}`, 'body_template')
}

function isKnown(name: string): boolean {
  return NAMES.some((known) => known === name) || JSON_PATH.test(name)
}

/** What is posted in place of an event, and where. */
export function fillTemplate(
  template: string,
  url: URL,
  event: StoredEvent,
): { body: Buffer; url: URL } {
  const preset = presetOf(template)
  const topic = preset?.topicOf?.(url)
  const valueOf = valuesOf(event, topic)
  const body = fill(partsOf(preset?.template ?? template), valueOf, preset)
  return { body: Buffer.from(body), url: topic === undefined ? url : rootOf(url) }
}

/** ntfy reads JSON there alone. */
function rootOf({ origin, search }: URL): URL {
  return new URL(`/${search}`, origin)
}

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g

function partsOf(template: string): readonly Part[] {
  const parts: Part[] = []
  let inString = false
  let end = 0
  function addText(text: string): void {
    // A backslash takes the next character with it, also a quotation mark.
    for (const [mark] of text.matchAll(/\\.|"/gs)) if (mark === '"') inString = !inString
    parts.push(text)
  }
  for (const match of template.matchAll(PLACEHOLDER)) {
    addText(template.slice(end, match.index))
    parts.push({ name: (match[1] ?? '').trim(), inString })
    end = match.index + match[0].length
  }
  addText(template.slice(end))
  return parts
}

/** Values are written as JSON: within a string without the quotation marks. */
function fill(
  parts: readonly Part[],
  valueOf: (name: string) => Value,
  { escape = (text) => text }: Pick<Preset, 'escape'> = {},
): string {
  const written = parts.map((part) => {
    if (typeof part === 'string') return part
    const value = valueOf(part.name)
    const shown = typeof value === 'string' ? escape(cut(value)) : value
    if (!part.inString) return JSON.stringify(shown)
    return JSON.stringify(String(shown ?? '')).slice(1, -1)
  })
  return written.join('')
}

function cut(text: string): string {
  const shown = text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE - 1)}…` : text
  return shown.toWellFormed()
}

/** What the placeholders stand for; the JSON of the event is read when the first one needs it. */
function valuesOf(event: StoredEvent, topic: string | undefined): (name: string) => Value {
  let read: { json: unknown } | undefined
  const member = (path: string): Value => {
    read ??= { json: jsonOf(event) }
    const value = memberAt(read.json, path)
    const isPlain = ['string', 'number', 'boolean'].includes(typeof value)
    return isPlain ? (value as Value) : null
  }
  return (name) => {
    if (name.startsWith('json.')) return member(name.slice('json.'.length))
    if (name === 'topic') return topic ?? null
    if (name === 'title') return `${event.event_type ?? 'event'} from ${event.provider}`
    if (name === 'summary') return summaryOf(event, member)
    if (name === 'received_at') return event.received_at.toISOString()
    return name === 'id' ? event.id : event[name as 'event_type' | 'provider']
  }
}

function jsonOf({ payload }: StoredEvent): unknown {
  return payload.length > MAX_PAYLOAD ? undefined : parseJson(payload.toString('utf8'))
}

/** Where senders have what a person asks for first: of each row the first member that is there. */
const SUMMARY: readonly (readonly string[])[] = [
  ['repository.full_name', 'project.path_with_namespace', 'repository.name'],
  ['ref'],
  ['sender.login', 'pusher.name', 'user_username', 'user.name', 'actor.name'],
  [
    'head_commit.message',
    'pull_request.title',
    'issue.title',
    'object_attributes.title',
    'data.title',
    'data.object.id',
    'title',
    'message',
    'text',
    'name',
  ],
]

/** A line about the event: well-known members, or its preview. */
function summaryOf(event: StoredEvent, member: (path: string) => Value): string {
  const found = SUMMARY.map((paths) => {
    const values = paths.map(member).filter((value) => typeof value === 'string' && value !== '')
    const [line = ''] = String(values[0] ?? '').split('\n', 1)
    return line.replace(/^refs\/(?:heads|tags)\//, '').trim()
  }).filter((text) => text !== '')
  if (found.length > 0) return found.join(' · ')
  return previewOf(event) ?? ''
}
