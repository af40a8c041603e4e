import { headerParameter } from '../../../../kernel/http/headers.ts'

/** A part of `multipart/form-data` (RFC 7578). */
export interface Part {
  name: string
  /** Of a file; undefined for a field. */
  filename: string | undefined
  contentType: string | undefined
  bytes: Buffer
}

/** Parts of a body, and bytes of the headers of a part. */
const MAX_PARTS = 1_000
const MAX_HEAD = 4 * 1024
/** Senders that end a line without CR are read, too. */
const END_OF_HEAD = /\r?\n\r?\n/
const LF = 0x0a
const CR = 0x0d

/**
 * The parts of a body, read forward. A body that ends early gives the parts that it began, and
 * `isWhole` is false; so it is for more parts than are read.
 */
export function readParts(body: Buffer, boundary: string) {
  const parts: Part[] = []
  const first = Buffer.from(`--${boundary}`)
  const delimiter = Buffer.from(`\n--${boundary}`)
  const beginsAtOnce = body.subarray(0, first.length).equals(first)
  let at = beginsAtOnce ? 0 : body.indexOf(delimiter) + 1
  if (at === 0 && !beginsAtOnce) return { parts, isWhole: false }
  for (let count = 0; ; count++) {
    const start = at + first.length
    if (body.toString('latin1', start, start + 2) === '--') return { parts, isWhole: true }
    const head = headAt(body, start)
    if (head === undefined || count === MAX_PARTS) return { parts, isWhole: false }
    // The line break of an empty part is that of its head.
    const next = body.indexOf(delimiter, head.end - 1)
    const end = next === -1 ? body.length : next - (body[next - 1] === CR ? 1 : 0)
    const part = partOf(head.text, body.subarray(head.end, Math.max(head.end, end)))
    if (part !== undefined) parts.push(part)
    if (next === -1) return { parts, isWhole: false }
    at = next + 1
  }
}

/** The lines before the content of a part, and where that begins. */
function headAt(body: Buffer, start: number) {
  const line = body.indexOf(LF, start)
  const window = body.toString('latin1', line, line + MAX_HEAD)
  const found = line === -1 ? null : END_OF_HEAD.exec(window)
  if (found === null) return undefined
  const end = line + found.index + found[0].length
  return { text: body.toString('utf8', line, end), end }
}

/** Undefined for a part without a name. */
function partOf(head: string, bytes: Buffer): Part | undefined {
  const disposition = lineOf(head, 'content-disposition')
  const name = headerParameter(disposition, 'name')
  if (name === undefined) return undefined
  const filename = headerParameter(disposition, 'filename')
  return { name, filename, contentType: lineOf(head, 'content-type'), bytes }
}

function lineOf(head: string, name: string): string | undefined {
  const lines = head.split(/\r?\n/)
  const line = lines.find((one) => one.toLowerCase().startsWith(`${name}:`))
  return line?.slice(name.length + 1).trim()
}
