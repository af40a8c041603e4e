/** Replaces every configured secret in a text, in each form that it may have been written in. */
export type Redact = (text: string) => string

/** The same, and how many characters of a text one secret may take, with the line breaks within it. */
export type Redaction = Redact & { longest(): number }

const MARK = '«redacted»'
/** Anything shorter would take words out of the text that are no secrets. */
const SHORTEST = 4
/** A line of a secret is told from any other, such as the frame of a key, when it is that long. */
const LINE_SHORTEST = 12
/**
 * A line break with the indentation after it, as it is or escaped in JSON, also more than once. A run of
 * backslashes is only looked at from its start: otherwise a long one would take quadratic time.
 */
const BREAK = /((?:[\r\n]|(?<!\\)\\+[rn])(?:[\r\n]|\\+[rn])*[ \t]*)/
/** Encoders break lines after four characters or more, so that breaks at most double a form. */
const WITH_BREAKS = 2

/**
 * Makes the redaction of secrets that may change while the program runs: `secrets` gives the same array
 * until they do, so that the pattern is made once.
 */
export function createRedact(secrets: () => readonly string[]): Redaction {
  let known: readonly string[] = []
  let pattern: RegExp | undefined
  let longest = 0

  function refresh(): void {
    const present = secrets()
    if (present === known) return
    known = present
    const forms = new Set(present.filter(({ length }) => length >= SHORTEST).flatMap(formsOf))
    // The longest first: a secret may begin with another one.
    const sorted = [...forms].toSorted((a, b) => b.length - a.length)
    longest = (sorted[0]?.length ?? 0) * WITH_BREAKS
    pattern = sorted.length === 0 ? undefined : new RegExp(sorted.map(escape).join('|'), 'g')
  }

  function redact(text: string): string {
    refresh()
    // What no database can keep goes too: a session must not fail for what it has read.
    const plain = text.replaceAll('\0', '').toWellFormed()
    if (pattern === undefined) return plain
    return redactBroken(plain.replaceAll(pattern, MARK), pattern)
  }
  return Object.assign(redact, {
    longest() {
      refresh()
      return longest
    },
  })
}

/** Takes out what matches once line breaks are left out. The breaks stay: a text keeps its number of lines. */
function redactBroken(text: string, pattern: RegExp): string {
  // Every second part is a break.
  const parts = text.split(BREAK)
  if (parts.length === 1) return text
  const joined = parts.filter((_, at) => at % 2 === 0).join('')
  // The text has no NUL: here one stands in the place of each character of a secret.
  const masked = joined.replaceAll(pattern, (form) => '\0'.repeat(form.length))
  if (masked === joined) return text
  let from = 0
  return parts
    .map((part, at) => {
      if (at % 2 === 1) return part
      from += part.length
      return masked.slice(from - part.length, from).replaceAll(/\0+/g, MARK)
    })
    .join('')
}

/** Without secrets, and without NUL, in every text within a value. */
export function redactDeep(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return redact(value)
  if (Array.isArray(value)) return value.map((item) => redactDeep(item, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [redact(name), redactDeep(item, redact)]),
  )
}

/** Text without secrets; of one that was cut off, no half of a secret stays at its end. */
export function redactCut(text: string, cut: boolean, redact: Redaction): string {
  const clean = redact(text)
  return cut ? clean.slice(0, Math.max(0, clean.length - redact.longest())) : clean
}

/** The beginning of a text, in one line: no half of a secret stands where it is cut. */
export function redactLine(text: string, longest: number, redact: Redact): string {
  // Once more after white space is gone: without it, a text may have become a secret.
  const line = redact(
    redact(text)
      .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
      .trim(),
  )
  return line.slice(0, longest).toWellFormed()
}

/**
 * The secret as it is, in a URL or a form, in JSON, in hex, and as base64 wherever it stands in what is
 * encoded. Of one with several lines each line counts: often a single one is shown.
 */
function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const json = JSON.stringify(secret).slice(1, -1)
  const encoded = encodeURIComponent(secret.toWellFormed())
  const inForm = new URLSearchParams({ '': secret }).toString().slice(1)
  return [
    ...[secret, ...secret.split(/\r?\n/).filter(({ length }) => length >= LINE_SHORTEST)],
    ...[encoded, inForm].flatMap((text) => [text, text.replaceAll(/%../g, lower)]),
    ...[json, json.replaceAll('/', String.raw`\/`)],
    ...[hex, hex.toUpperCase()],
    ...[0, 1, 2].flatMap((before) => base64At(bytes, before)),
  ].filter(({ length }) => length >= SHORTEST)
}

function lower(text: string): string {
  return text.toLowerCase()
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
