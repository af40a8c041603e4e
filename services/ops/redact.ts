/** Replaces every configured secret in a text, in every form that it may be written in. */
export type Redact = (text: string) => string

/** `longest` is the number of characters that one secret may take, with line breaks in it. */
export type Redaction = Redact & { longest(): number }

const MARK = '«redacted»'
/** Shorter secrets would match ordinary words. */
const MIN_SECRET = 4
/** Shorter lines of a secret may be ordinary text, such as the frame of a key. */
const MIN_LINE = 12
/**
 * Line breaks with the indentation after them, plain or escaped in JSON. A run of backslashes
 * matches only from its start: otherwise a long run would take quadratic time.
 */
const BREAK = /((?:[\r\n]|(?<!\\)\\+[rn])(?:[\r\n]|\\+[rn])*[ \t]*)/
/** Encoders wrap lines after four characters or more, so line breaks at most double the length. */
const WRAPPED = 2

/**
 * Redacts secrets that may change while the program runs. `secrets` gives the same array until
 * they do, so that the pattern is built once.
 */
export function createRedact(secrets: () => readonly string[]): Redaction {
  let known: readonly string[] = []
  let pattern: RegExp | undefined
  let longest = 0

  function refresh(): void {
    const present = secrets()
    if (present === known) return
    known = present
    const forms = new Set(present.filter(({ length }) => length >= MIN_SECRET).flatMap(formsOf))
    // Longest first: one secret may be the beginning of another.
    const sorted = [...forms].toSorted((a, b) => b.length - a.length)
    longest = (sorted[0]?.length ?? 0) * WRAPPED
    const source = sorted.map(RegExp.escape).join('|')
    pattern = source === '' ? undefined : new RegExp(source, 'g')
  }

  function redact(text: string): string {
    refresh()
    // PostgreSQL stores neither NUL nor half characters: a session must not fail because of what
    // it has read.
    const plain = text.replaceAll('\0', '').toWellFormed()
    if (pattern === undefined) return plain
    return redactWrapped(plain.replaceAll(pattern, MARK), pattern)
  }
  return Object.assign(redact, {
    longest() {
      refresh()
      return longest
    },
  })
}

/**
 * Finds secrets that are wrapped over lines. The line breaks stay: a text keeps its number of
 * lines.
 */
function redactWrapped(text: string, pattern: RegExp): string {
  // Every second part is a break.
  const parts = text.split(BREAK)
  if (parts.length === 1) return text
  const joined = parts.filter((_, at) => at % 2 === 0).join('')
  // The text has no NUL, so a NUL can stand for every character of a secret.
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

/** Redacts every text within a value. */
export function redactDeep(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return redact(value)
  if (Array.isArray(value)) return value.map((item) => redactDeep(item, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [redact(name), redactDeep(item, redact)]),
  )
}

/** Redacts a text. If it was cut off, its end is removed as well: it may be half of a secret. */
export function redactCut(text: string, cut: boolean, redact: Redaction): string {
  const clean = redact(text)
  return cut ? clean.slice(0, Math.max(0, clean.length - redact.longest())) : clean
}

/** The beginning of a text, in one line and without half of a secret at its end. */
export function redactLine(text: string, max: number, redact: Redact): string {
  // Again without white space: the text may contain a secret only then.
  const line = redact(text).replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
  return redact(line.trim()).slice(0, max).toWellFormed()
}

/**
 * A secret as it is, in a URL or a form, in JSON, in hex, and in base64 at any offset. Every line
 * of a secret counts as well: often only one is shown.
 */
function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const json = JSON.stringify(secret).slice(1, -1)
  const inUrl = encodeURIComponent(secret.toWellFormed())
  const inForm = new URLSearchParams({ '': secret }).toString().slice(1)
  const forms = [
    secret,
    inUrl,
    withLowerCodes(inUrl),
    inForm,
    withLowerCodes(inForm),
    json,
    json.replaceAll('/', String.raw`\/`),
    hex,
    hex.toUpperCase(),
    ...[0, 1, 2].flatMap((before) => base64At(bytes, before)),
  ]
  const lines = secret.split(/\r?\n/).filter(({ length }) => length >= MIN_LINE)
  return [...lines, ...forms.filter(({ length }) => length >= MIN_SECRET)]
}

function withLowerCodes(encoded: string): string {
  return encoded.replaceAll(/%../g, (code) => code.toLowerCase())
}

/** The part of a base64 text that depends on the secret alone, if `before` bytes precede it. */
function base64At(bytes: Buffer, before: number): readonly string[] {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  const from = Math.ceil((before * 8) / 6)
  const to = Math.floor(((before + bytes.length) * 8) / 6)
  const inner = text.slice(from, to)
  return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]
}
