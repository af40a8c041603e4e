/** Stored headers as they came: in their order and case. */
export function headersInOrder(stored: string): readonly (readonly [string, string])[] {
  return JSON.parse(stored) as [string, string][]
}

/** Of a repeated header of these names only the first value counts, as in `node:http`. */
const SINGLE = new Set(
  (
    'age authorization content-length content-type etag expires from host if-modified-since ' +
    'if-unmodified-since last-modified location max-forwards proxy-authorization referer ' +
    'retry-after server user-agent'
  ).split(' '),
)

/** Stored headers by name (hooks.md section 2): in lower case, repeated ones joined. */
export function headersByName(stored: string): Readonly<Record<string, string>> {
  // A map, because a header may be named as what every object has, such as `constructor`.
  const headers = new Map<string, string>()
  for (const [given, value] of headersInOrder(stored)) {
    const name = given.toLowerCase()
    const before = headers.get(name)
    const separator = name === 'cookie' ? '; ' : ', '
    if (before === undefined) headers.set(name, value)
    else if (!SINGLE.has(name)) headers.set(name, before + separator + value)
  }
  return Object.fromEntries(headers)
}
