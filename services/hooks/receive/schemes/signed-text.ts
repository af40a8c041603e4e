import type { IncomingHttpHeaders } from 'node:http'
import { crc32 } from 'node:zlib'
import { entryOf, memberAt, parseObject } from '../../../../kernel/json.ts'
import type { Scheme } from './scheme.ts'

/** What is signed beside the body: empty where the scheme has no such part. */
export interface Stamp {
  /** The delivery's id, which stays the same when it is sent again. */
  id: string
  /** When it was signed, in Unix seconds. */
  time: string
}

/** What of a request may be signed beside its body. */
export interface Head {
  headers: IncomingHttpHeaders
  receivedAt: Date
  method?: string
  /** Base URL, path and query. */
  url?: string
}

/** With the text of a body whose fields are signed. */
export interface ReadHead extends Head {
  text?: string
  body?: Buffer
  /** What the sender and an operator know, where it is part of the signed text. */
  secret?: string
}

/** The signed texts before and after the body; the whole text where fields alone are signed. */
export function signedTexts(
  scheme: Scheme,
  { id, time }: Stamp,
  head: ReadHead,
): readonly string[] {
  const { text = '', body = '', method = '', url = '', secret = '' } = head
  const parts: Readonly<Record<string, () => string>> = {
    id: () => id,
    timestamp: () => time,
    method: () => method,
    url: () => url,
    path: () => url.replace(/^https?:\/\/[^/]*/, ''),
    headers: () => headersText(scheme, head.headers),
    form: () => formText(text),
    crc32: () => String(crc32(body)),
    lines: () => linesText(scheme, text),
    secret: () => secret,
  }
  const fill = (template: string): string =>
    template.replace(/\{(\w+)(?::([\w.-]+))?\}/g, (_, part: string, path: string = '') => {
      if (part === 'json') return memberText(text, path)
      return part === 'header' ? String(head.headers[path] ?? '') : (parts[part]?.() ?? '')
    })
  return scheme.signed.split('{body}').map(fill)
}

/** A text or a whole number in a JSON body; empty for all else. */
function memberText(text: string, path: string): string {
  const member = memberAt(parseObject(text) ?? {}, path)
  return typeof member === 'string' || Number.isSafeInteger(member) ? String(member) : ''
}

/** Names and values of members, each on a line of its own; a missing one is left out. */
function linesText({ fetched }: Scheme, text: string): string {
  if (fetched?.kind !== 'certificate' || fetched.lines === undefined) return ''
  const body = parseObject(text) ?? {}
  const names = entryOf(fetched.lines.members, body[fetched.lines.by]) ?? []
  const lines = names.map((name) => [name, memberAt(body, name)] as const)
  return lines
    .map(([name, value]) => (typeof value === 'string' ? `${name}\n${value}\n` : ''))
    .join('')
}

/** Names and values of a form in the order of the names, as Twilio joins them. */
function formText(text: string): string {
  const fields = [...new URLSearchParams(text)]
  const sorted = fields.toSorted(([a], [b]) => Number(a > b) - Number(a < b))
  return sorted.map(([name, value]) => name + value).join('')
}

/** Names and values of the signed headers, as Contentful joins them. */
function headersText(scheme: Scheme, headers: IncomingHttpHeaders): string {
  const names = signedHeaderNames(scheme, headers) ?? []
  return names.map((name) => `${name}:${String(headers[name])}`).join(';')
}

/**
 * The names of the signed headers, as a header lists them. Undefined unless each is there once,
 * and the time and the list itself are among them.
 */
export function signedHeaderNames(
  { signedHeaders, timestamp }: Scheme,
  headers: IncomingHttpHeaders,
): readonly string[] | undefined {
  if (signedHeaders === undefined) return []
  const list = headers[signedHeaders]
  const names = typeof list === 'string' ? list.split(',') : []
  const isWhole =
    new Set(names).size === names.length &&
    names.every((name) => typeof headers[name] === 'string') &&
    [signedHeaders, ...timestamp].every((name) => names.includes(name))
  return isWhole ? names : undefined
}
