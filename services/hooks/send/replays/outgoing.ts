import type { StoredEvent } from '../../../../db/hooks/log/events.ts'
import { Fault } from '../../../../kernel/fault.ts'
import type { HostSet } from '../../../../kernel/net/addresses.ts'
import type { OutboundResult } from '../../../../kernel/net/outbound.ts'
import { isProxyHeader } from '../../../../kernel/net/identity.ts'
import { isSensitiveName, REDACTED, redactUrlTokens } from '../../redact.ts'

// Where an event may be sent, with which of its headers, and what the target answers.

export interface Target {
  url: URL
  /** True when an operator vouches for it: it may then be on a private network. */
  trusted: boolean
}

/** What a target must be, in words. */
export const TARGET_FORM = 'an http:// or https:// URL without credentials'

/** Reads a target URL; undefined for anything that is not `TARGET_FORM`. */
export function parseTarget(text: string): URL | undefined {
  // A URL parser drops or encodes control characters; the text itself is stored.
  if (text.length > 2_048 || /\p{Cc}/u.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const plain = /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  return plain ? url : undefined
}

/**
 * The target of a replay: the argument, else the configured default (decisions.md section 3). Only
 * the default itself and the hosts of HOOKS_REPLAY_TARGETS are trusted.
 */
export function chooseTarget(
  argument: string | undefined,
  defaultTarget: string | null,
  allowed: HostSet | undefined,
): Target {
  const fallback = defaultTarget === null ? undefined : parseTarget(defaultTarget)
  if (argument === undefined && fallback === undefined) {
    throw wrongTarget('Give a target URL; the settings name no default target.')
  }
  const url = argument === undefined ? fallback : parseTarget(argument)
  if (url === undefined) throw wrongTarget(`The target URL must be ${TARGET_FORM}.`)
  return { url, trusted: url.href === fallback?.href || allowed?.(url) === true }
}

export function wrongTarget(message: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', message, { field: 'target_url' })
}

/** Headers of one connection: true of no other request. */
const OF_ONE_CONNECTION =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings)$/
/** Headers that an HTTP client sets by itself; and no answer is unpacked here. */
const OF_ONE_MESSAGE = /^(host|content-length|expect|accept-encoding)$/

const METHOD_MARK = 'x-gatehouse-method'
const QUERY_MARK = 'x-gatehouse-query'

/**
 * Headers with the original method and query of an event that did not come by POST. It is sent by
 * POST: otherwise a provider could choose DELETE, with the credentials of a destination.
 */
export function requestMarks({
  method,
  query,
}: Pick<StoredEvent, 'method' | 'query'>): Readonly<Record<string, string>> {
  if (method === null || method === 'POST') return {}
  const text = query?.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)
  return { [METHOD_MARK]: method, ...(text && { [QUERY_MARK]: text }) }
}

/** True for a header that the HTTP client alone may set. */
export function isOfHttp(name: string): boolean {
  return OF_ONE_CONNECTION.test(name) || OF_ONE_MESSAGE.test(name)
}

/** True for a header that another connection may carry as well, and that no proxy added. */
export function isRepeatable(name: string): boolean {
  return !isOfHttp(name) && !isProxyHeader(name)
}

/**
 * The stored headers with which an event is sent: those of the provider (event type, delivery id,
 * …), without those of its connection and without credentials, whose values were never stored.
 */
export function outgoingHeaders(
  stored: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const named = (stored['connection'] ?? '').split(',').map((name) => name.trim().toLowerCase())
  const kept = Object.entries(stored).filter(
    ([name, value]) =>
      isRepeatable(name) &&
      // A provider must not claim another method than its own.
      name !== METHOD_MARK &&
      name !== QUERY_MARK &&
      !named.includes(name) &&
      !isSensitiveName(name) &&
      !value.includes(REDACTED),
  )
  return Object.fromEntries(kept)
}

/** Characters of a target's answer that are kept. */
const MAX_ANSWER = 4_096
/** Bytes that are read of it, more after credentials: one that crosses the end must be recognised. */
export const ANSWER_BYTES = MAX_ANSWER + 1_024

/**
 * The beginning of a target's answer for the page of the event; null without a body. A target that
 * echoes the request answers with our signature, a credential, or a token of its URL: they are
 * replaced, as they were sent and as JSON or a URL writes them. Bytes that are not UTF-8, and control
 * characters, become U+FFFD.
 */
export function keptAnswer(
  result: OutboundResult,
  url: URL,
  signature: Readonly<Record<string, string>>,
  credentials: readonly string[] = [],
): string | null {
  if (result.kind !== 'answered' || result.body.length === 0) return null
  // As part of a stream: a character that the end has cut is left out.
  const size = credentials.length === 0 ? ANSWER_BYTES : undefined
  let text = new TextDecoder().decode(result.body.subarray(0, size), { stream: true })
  const secrets = [...credentials, ...secretsSent(url, signature)]
  for (const secret of secrets.toSorted((a, b) => b.length - a.length)) {
    const json = JSON.stringify(secret).slice(1, -1)
    for (const written of [secret, json, json.replaceAll('/', '\\/'), encodeURIComponent(secret)])
      text = text.replaceAll(written, REDACTED)
  }
  return redactUrlTokens(text)
    .replaceAll('\r\n', '\n')
    .replace(/[^\P{Cc}\n\t]/gu, '\u{FFFD}')
    .slice(0, MAX_ANSWER)
    .toWellFormed()
}

/** A digest in the value of a header, which may hold a time and a version, too. */
const DIGEST = /[A-Za-z0-9+/]{32,}={0,2}/g
/** A shorter value of a parameter is no secret, and may be anywhere in an answer. */
const MIN_TOKEN = 8

function secretsSent(url: URL, signature: Readonly<Record<string, string>>): readonly string[] {
  const digests = Object.values(signature).flatMap((value) => value.match(DIGEST) ?? [])
  const tokens = [...url.searchParams]
    .filter(([name, value]) => isSensitiveName(name) && value.length >= MIN_TOKEN)
    .map(([, value]) => value)
  return [...digests, ...tokens]
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}
