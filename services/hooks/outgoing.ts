import { Fault } from '../../kernel/fault.ts'
import type { HostSet } from '../../kernel/net/addresses.ts'
import type { OutboundResult } from '../../kernel/net/outbound.ts'
import { isProxyHeader } from '../../kernel/net/identity.ts'
import { isSensitiveName, REDACTED } from './redact.ts'

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

function wrongTarget(message: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', message, { field: 'target_url' })
}

/** Headers of one connection: true of no other request. */
const OF_ONE_CONNECTION =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings)$/
/** Headers that an HTTP client sets by itself. */
const OF_ONE_MESSAGE = /^(host|content-length|expect)$/

/** True for a header that another connection may carry as well, and that no proxy added. */
export function isRepeatable(name: string): boolean {
  const isOwn = OF_ONE_CONNECTION.test(name) || OF_ONE_MESSAGE.test(name)
  return !isOwn && !isProxyHeader(name)
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
      !named.includes(name) &&
      !isSensitiveName(name) &&
      !value.includes(REDACTED),
  )
  return Object.fromEntries(kept)
}

/**
 * What a target answered to an event; without an answer the status is null and `detail` says why.
 */
export interface TargetAnswer {
  status: number | null
  ms: number
  detail: string | null
}

export function targetAnswer(result: OutboundResult): TargetAnswer {
  const { ms } = result
  if (result.kind !== 'answered') return { status: null, ms, detail: result.reason }
  const { status } = result
  const isRedirect = status >= 300 && status < 400
  return { status, ms, detail: isRedirect ? 'redirects are not followed' : null }
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}
