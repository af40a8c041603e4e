import {
  isList,
  isObject,
  objectOf,
  parseJson,
  stringOf,
  type JsonObject,
} from '../../../../kernel/json.ts'
import { JSON_TOKEN } from './json-nodes.ts'

// What an event says in a few words, for a row of a list: "Globex", "€205.58", "open". The payload
// is recognized by its shape: names of providers are chosen by operators.

/** Longer values say no more in a row; each of the parts is cut here. */
const PART_CHARACTERS = 60
const MAX_PARTS = 4

/** The telling parts of a payload; none where its beginning says as much. */
export function meaningOf(text: string, isCut: boolean): readonly string[] {
  const value = text.trimStart().startsWith('{') ? readStart(text, isCut) : undefined
  if (!isObject(value)) return []
  const parts = slackParts(value) ?? stripeParts(value) ?? gitParts(value) ?? firstValues(value)
  return parts.map(oneLine).filter((part) => part !== '')
}

type Parts = readonly (string | undefined)[]

/** By characters, so that no character is cut in two. */
function oneLine(part: string | undefined): string {
  const line = (part ?? '').replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  const shown = SHOWN.exec(line)?.[0] ?? ''
  return shown.length < line.length ? `${shown.trimEnd()}…` : line
}

const SHOWN = new RegExp(`^.{0,${PART_CHARACTERS}}`, 'u')

/** A command, the event of a channel, or a message as it is posted to Slack. */
function slackParts({ type, event, text, command }: JsonObject): Parts | undefined {
  if (stringOf(command)?.startsWith('/') === true) return [`${command} ${stringOf(text) ?? ''}`]
  const said = type === 'event_callback' ? objectOf(event)['text'] : text
  const words = stringOf(said)
  return words === undefined || words === '' ? undefined : [words]
}

function stripeParts({ object, data }: JsonObject): Parts | undefined {
  const about = objectOf(data)['object']
  if (object !== 'event' || !isObject(about)) return undefined
  const known = [customerOf(about), amountOf(about), stringOf(about['status'])]
  return known.every((part) => part === undefined) ? firstValues(about) : known
}

function customerOf(about: JsonObject): string | undefined {
  const { customer_name, customer_details, billing_details, name } = about
  const { customer_email, receipt_email, email, customer } = about
  const names = [
    customer_name,
    objectOf(customer_details)['name'],
    objectOf(billing_details)['name'],
    name,
    customer_email,
    receipt_email,
    email,
    customer,
  ]
  return names.map(stringOf).find(Boolean)
}

/** Currencies whose smallest unit is not a hundredth, as Stripe counts them. */
const WHOLE = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ')
const THOUSANDTHS = 'bhd jod kwd omr tnd'.split(' ')

function amountOf(about: JsonObject): string | undefined {
  const currency = stringOf(about['currency'])?.toLowerCase() ?? ''
  const { amount_due, amount_total, total, amount } = about
  const units = [amount_due, amount_total, total, amount].find(Number.isSafeInteger)
  if (units === undefined || !/^[a-z]{3}$/.test(currency)) return undefined
  const digits = WHOLE.includes(currency) ? 0 : THOUSANDTHS.includes(currency) ? 3 : 2
  return new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(Number(units) / 10 ** digits)
}

/** GitHub, and others that name a repository as it does. */
function gitParts(value: JsonObject): Parts | undefined {
  const repository = stringOf(objectOf(value['repository'])['full_name'])
  if (repository === undefined) return undefined
  const sender = stringOf(objectOf(value['sender'])['login'])
  const { ref, action } = value
  if (typeof ref === 'string' && value['pusher'] !== undefined) {
    const by = stringOf(objectOf(value['pusher'])['name']) ?? sender
    const branch = ref.replace(/^refs\/(?:heads|tags)\//, '')
    return [repository, branch, `${pushed(value)}${byText(by)}`]
  }
  const about = [value['pull_request'], value['issue'], value['discussion']].find(isObject)
  const run = [value['workflow_run'], value['check_run'], value['release']].find(isObject)
  const title =
    about === undefined
      ? nameOf(run)
      : `#${scalarText(about['number'])} ${scalarText(about['title'])}`
  const done = stringOf(objectOf(run)['conclusion']) ?? stringOf(action)
  return [repository, title, `${done?.replaceAll('_', ' ') ?? ''}${byText(sender)}`]
}

function nameOf(run: JsonObject | undefined): string | undefined {
  return stringOf(run?.['name']) ?? stringOf(run?.['tag_name'])
}

function byText(who: string | undefined): string {
  return who === undefined ? '' : ` by ${who}`
}

/** What a push did. Where the payload was cut within its commits, there are more of them. */
function pushed(push: JsonObject): string {
  const count = isList(push['commits']) ? push['commits'].length : 0
  const isWhole = Object.hasOwn(push, 'head_commit')
  if (count === 0) return push['deleted'] ? 'deleted' : push['created'] ? 'created' : 'pushed'
  return `${count}${isWhole ? '' : '+'} ${count === 1 && isWhole ? 'commit' : 'commits'}`
}

/** Members that say the same of most events, or nothing to people. */
const SILENT =
  /^(?:id|object|type|event|event_type|created|version|api_version)$|(?:_id|_at|_url)$/i
/** Addresses, hashes and identifiers. */
const UNREADABLE = /^https?:\/\/|^[\da-f-]{20,}$|^\d{4}-\d\d-\d\dT/i

/** The first values that tell something, with their names: "total: 12". */
function firstValues(value: JsonObject): readonly string[] {
  const found: string[] = []
  collect(value, 0, found)
  return found
}

/** The outer values come first. Deeper ones are parts of parts. */
function collect(value: JsonObject, depth: number, found: string[]): void {
  const members = Object.entries(value)
  for (const [name, member] of members) {
    if (found.length === MAX_PARTS) return
    const text = scalarText(member).trim()
    if (text === '' || SILENT.test(name) || UNREADABLE.test(text)) continue
    found.push(`${name}: ${text}`)
  }
  if (depth === 2) return
  for (const [, member] of members) {
    if (isObject(member) && found.length < MAX_PARTS) collect(member, depth + 1, found)
  }
}

/** A text, a number or a word; empty for all else: a list as text could be deeper than the stack. */
function scalarText(value: unknown): string {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : ''
}

const CLOSER: Readonly<Record<string, string>> = { '{': '}', '[': ']' }

/** JSON whose end may be missing: what is whole of it, with its brackets closed. */
function readStart(text: string, isCut: boolean): unknown {
  if (!isCut) return parseJson(text)
  const open: string[] = []
  let end = 0
  let closers = ''
  for (const { 0: token, index } of text.matchAll(JSON_TOKEN)) {
    if (CLOSER[token] !== undefined) open.push(CLOSER[token])
    else if (token === '}' || token === ']') open.pop()
    // The text can be cut before a comma and behind an opened bracket.
    const isEnd = token === ',' || CLOSER[token] !== undefined
    if (!isEnd) continue
    end = token === ',' ? index : index + 1
    closers = open.toReversed().join('')
  }
  return parseJson(text.slice(0, end) + closers)
}
