/** What stands in the place of a secret value. */
export const REDACTED = '«redacted»'

/** Words that tell of a secret anywhere in a name, as in `X-ApiKey-2`. */
const SENSITIVE_WORD = new RegExp(
  'signature|hmac|token|secret|auth|cookie|api[-_]?key|passw|passphrase|passcode|' +
    'credential|session|jwt|bearer',
  'i',
)
/** Words that tell of a secret at the end of a name: `X-Functions-Key`, `X-Pass`, `sig`. */
const SENSITIVE_END = /(?:key|(?:^|[-_.])(?:pass|pwd|sig|sas))$/i
/** Keys that name something and open nothing. */
const NAMING_KEY = new RegExp(
  '(?:idempotency|event|message|record|issue|group|correlation|routing|partition|' +
    'dedup|deduplication|cache|surrogate|sort|object|public|websocket)[-_.]?key$',
  'i',
)

/** True for a header, or a parameter of a URL, whose value may be a secret. */
export function isSensitiveName(name: string): boolean {
  return SENSITIVE_WORD.test(name) || (SENSITIVE_END.test(name) && !NAMING_KEY.test(name))
}

/**
 * Values that are URLs may carry a secret in a parameter or, to a generic receiver, in their path.
 */
const PARAMETER = /(?:^|[?&;#])([^=?&;#]*)=/g
/** A value in quotation marks, or up to what ends one: in a header `Link` that is `>`. */
const VALUE = /^\s*(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^&;#\s"'>]*)/
const TOKEN_IN_PATH =
  /((?:\/webhooks\/(?:generic\/[^/?#\s]+|\d+)|\.slack\.com\/services\/\w+\/\w+)\/)[^/?#\s"']+/g

/**
 * Headers as they are stored: JSON of a list of [name, value], in the order and case in which they
 * came, with secret values replaced. `raw` has names and values in turn; `secret` has names in
 * lower case that don't tell of a secret by themselves.
 */
export function storedHeaders(raw: readonly string[], secret: readonly string[] = []): string {
  const pairs: [name: string, value: string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    const isSecret = isSensitiveName(name) || secret.includes(name.toLowerCase())
    pairs.push([name, isSecret ? REDACTED : redactUrlTokens(value)])
  }
  return JSON.stringify(pairs)
}

/**
 * The query of a receiver without the values of parameters whose names tell of a secret; null
 * without a query. Names may be percent-encoded.
 */
export function storedQuery(query: string): string | null {
  if (query === '') return null
  const parts = query.split('&').map((part) => {
    const [[name = '', value = ''] = []] = new URLSearchParams(part)
    const clean = isSensitiveName(name) ? REDACTED : redactUrlTokens(value)
    // PostgreSQL stores no NUL, and the parameter is decoded.
    return clean === value ? part : `${name}=${clean}`.replaceAll('\0', '\u{FFFD}')
  })
  return parts.join('&')
}

/**
 * A URL, or text that holds one, without the secrets in its parameters and the tokens in its path.
 */
export function redactUrlTokens(text: string): string {
  // Few headers hold a URL, and each delivery has a dozen: what can't match is not searched.
  const clean = text.includes('=') ? redactParameters(text) : text
  return /webhooks|slack/.test(clean) ? clean.replace(TOKEN_IN_PATH, `$1${REDACTED}`) : clean
}

/**
 * A segment of a path that is made of words, such as `github`, `Order-Paid` or `v2`: not a token.
 */
const WORDS =
  /^(?=.{1,32}$)(?:[a-z]{1,16}|[A-Z][a-z]{0,15}|[A-Z]{2,8})?\d{0,4}(?:[-_.](?:[A-Z]?[a-z]{1,16}|\d{1,4}))*$/
/** Segments that may be shown: `/webhooks/generic/name`; a token would follow. */
const SHOWN_SEGMENTS = 3
const HIDDEN = '…'

/** A path that leads to no receiver, without what may be a token; short, and in plain ASCII. */
export function redactUnknownPath(path: string): string {
  const segments = path.split('/').slice(1)
  const shown = segments
    .slice(0, SHOWN_SEGMENTS)
    .map((segment) => (segment === '' || WORDS.test(segment) ? segment : HIDDEN))
  return `/${[...shown, ...(segments.length > SHOWN_SEGMENTS ? [HIDDEN] : [])].join('/')}`
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
    done = value + (VALUE.exec(text.slice(value))?.[0].length ?? 0)
  }
  return clean + text.slice(done)
}
