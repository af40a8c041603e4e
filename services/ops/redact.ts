/** Replaces every configured secret in a text, in each form that it may have been written in. */
export type Redact = (text: string) => string

const MARK = '«redacted»'
/** Anything shorter would take words out of the text that are no secrets. */
const SHORTEST = 4

/** Makes the redaction of secrets that may change while the program runs. */
export function createRedact(secrets: () => readonly string[]): Redact & { longest(): number } {
  let known: readonly string[] = []
  let pattern: RegExp | undefined
  let longest = 0

  function refresh(): void {
    const present = secrets()
    if (present.length === known.length && present.every((text, at) => text === known[at])) return
    known = present
    const forms = new Set(present.filter(({ length }) => length >= SHORTEST).flatMap(formsOf))
    // The longest first: a secret may begin with another one.
    const sorted = [...forms].toSorted((a, b) => b.length - a.length)
    longest = sorted[0]?.length ?? 0
    pattern = sorted.length === 0 ? undefined : new RegExp(sorted.map(escape).join('|'), 'g')
  }

  function redact(text: string): string {
    refresh()
    return pattern === undefined ? text : text.replaceAll(pattern, MARK)
  }
  return Object.assign(redact, {
    longest() {
      refresh()
      return longest
    },
  })
}

/** The secret as it is, in a URL, in JSON, in hex, and as base64 wherever it stands in what is encoded. */
function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  return [
    secret,
    encodeURIComponent(secret.toWellFormed()),
    JSON.stringify(secret).slice(1, -1),
    hex,
    hex.toUpperCase(),
    ...[0, 1, 2].flatMap((before) => base64At(bytes, before)),
  ].filter(({ length }) => length >= SHORTEST)
}

/** The part of a base64 text that only the secret decides, when `before` bytes come before it. */
function base64At(bytes: Buffer, before: number): readonly string[] {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  const from = Math.ceil((before * 8) / 6)
  const to = Math.floor(((before + bytes.length) * 8) / 6)
  const inner = text.slice(from, to)
  return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]
}

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
}
