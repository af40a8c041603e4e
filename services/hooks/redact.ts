import type { IncomingHttpHeaders } from 'node:http'

/** What stands in the place of a secret value. */
export const REDACTED = '«redacted»'

/** Words that tell of a secret anywhere in a name, as in `X-ApiKey-2`. */
const SENSITIVE_WORD =
  /signature|hmac|token|secret|auth|cookie|api[-_]?key|passw|passphrase|passcode|credential|session|jwt|bearer/i
/** Words that tell of a secret at the end of a name: `X-Functions-Key`, `X-Pass`, `sig`. */
const SENSITIVE_END = /(?:key|(?:^|[-_.])(?:pass|pwd|sig|sas))$/i
/** Keys that name something and open nothing. */
const NAMING_KEY =
  /(?:idempotency|event|message|record|issue|group|correlation|routing|partition|dedup|deduplication|cache|surrogate|sort|object|public|websocket)[-_.]?key$/i

/** True for a header, or a parameter of a URL, whose value may be a secret. */
export function isSensitiveName(name: string): boolean {
  return SENSITIVE_WORD.test(name) || (SENSITIVE_END.test(name) && !NAMING_KEY.test(name))
}

/**
 * Values that are URLs may carry a secret in a parameter or, to a generic receiver, in their path.
 */
const PARAMETER = /(?:^|[?&;#])([^=?&;#]*)=/g
const END_OF_VALUE = /[&;#\s"']|$/
const TOKEN_IN_PATH = /(\/webhooks\/generic\/[^/?#\s]+\/)[^/?#\s"']+/g

/** Request headers as they may be stored and shown: names in lower case, secret values replaced. */
export function sanitizeHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const clean: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    const text = Array.isArray(value) ? value.join(', ') : value
    clean[name] = isSensitiveName(name) ? REDACTED : redactUrlTokens(text)
  }
  return clean
}

/**
 * A URL, or text that holds one, without the secrets in its parameters and the tokens in its path.
 */
export function redactUrlTokens(text: string): string {
  // Few headers hold a URL, and each delivery has a dozen: what can't match is not searched.
  const clean = text.includes('=') ? redactParameters(text) : text
  return clean.includes('/webhooks/') ? clean.replace(TOKEN_IN_PATH, `$1${REDACTED}`) : clean
}

/**
 * Parameters are found one by one, so that a URL within the value of another parameter is read,
 * too.
 */
function redactParameters(text: string): string {
  let clean = ''
  let done = 0
  for (const { 0: start, 1: words = '', index } of text.matchAll(PARAMETER)) {
    // In a header with several words only the last one before the `=` is the parameter's name.
    if (index < done || !isSensitiveName(words.split(/\s/).at(-1) ?? '')) continue
    const value = index + start.length
    clean += text.slice(done, value) + REDACTED
    done = value + text.slice(value).search(END_OF_VALUE)
  }
  return clean + text.slice(done)
}
