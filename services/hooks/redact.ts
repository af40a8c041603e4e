import type { IncomingHttpHeaders } from 'node:http'

/** What stands in the place of a secret value. */
export const REDACTED = '«redacted»'

const SENSITIVE_NAME = /signature|token|secret|api-?key|auth|^cookie$/

/** True for a header whose value may be a secret. */
export function isSensitiveName(name: string): boolean {
  return SENSITIVE_NAME.test(name)
}

/** Values that are URLs may carry a token in their query or, to a generic receiver, in their path. */
const TOKEN_IN_QUERY = /((?:^|[?&;])[^=&;?]*token=)[^&;#\s"']*/gi
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

/** A URL, or text that holds one, without the tokens in its query and path. */
export function redactUrlTokens(text: string): string {
  // Few headers hold a URL, and each delivery has a dozen: what can't match is not searched.
  const clean = text.includes('=') ? text.replace(TOKEN_IN_QUERY, `$1${REDACTED}`) : text
  return clean.includes('/webhooks/') ? clean.replace(TOKEN_IN_PATH, `$1${REDACTED}`) : clean
}
