import { appendFileSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const LIST = 'secrets.ndjson'
const TRANSCRIPTS = /\.(log|http|sse|html)$/

/** A place where a secret was written: never with its value. */
type Leak = { secret: string; file: string; line: number; text: string }

type Registered = { name: string; value: string }

/** Adds a value to what must not appear in any transcript of the run in `folder`. */
export function registerSecret(folder: string, name: string, value: string) {
  appendFileSync(join(folder, LIST), `${JSON.stringify({ name, value } satisfies Registered)}\n`)
}

/**
 * Every line of the run's transcripts that holds a registered secret, as it is or in base64, hex or
 * URL encoding. The line is cut to the words around it and the secret is blanked.
 */
export function findLeaks(folder: string) {
  const needles = registered(folder).flatMap(({ name, value }) =>
    spellings(value).map((bytes) => ({ name, bytes })),
  )
  const find = searcher(needles)
  return readdirSync(folder)
    .filter((entry) => TRANSCRIPTS.test(entry))
    .flatMap((file) => {
      const content = readFileSync(join(folder, file))
      return find(content).map(({ needle, at }) =>
        describe(content, at, needle.bytes.length, needle.name, file),
      )
    })
}

/** A spelling of a secret; none is shorter than the eight bytes by which it is found. */
type Needle = { name: string; bytes: Buffer }

const TABLE_BITS = 20

/**
 * Finds the first place of each needle in one pass over the content: at each byte the last eight are
 * looked up among the needles' own last eight, which are random.
 */
function searcher(
  needles: readonly Needle[],
): (content: Buffer) => readonly { needle: Needle; at: number }[] {
  const filter = new Uint8Array(1 << TABLE_BITS)
  const table = new Map<number, Needle[]>()
  for (const needle of needles) {
    const { bytes } = needle
    const key = mix(bytes.readInt32BE(bytes.length - 8), bytes.readInt32BE(bytes.length - 4))
    filter[key] = 1
    table.set(key, [...(table.get(key) ?? []), needle])
  }
  return (content) => {
    const found = new Map<Needle, number>()
    let [older, newer] = [0, 0]
    for (let i = 0; i < content.length; i++) {
      older = (older << 8) | (newer >>> 24)
      newer = (newer << 8) | (content[i] ?? 0)
      const key = mix(older, newer)
      if (filter[key] === 0) continue
      for (const needle of table.get(key) ?? []) {
        const at = i + 1 - needle.bytes.length
        if (at < 0 || found.has(needle)) continue
        if (needle.bytes.equals(content.subarray(at, i + 1))) found.set(needle, at)
      }
    }
    return [...found].map(([needle, at]) => ({ needle, at }))
  }
}

function mix(older: number, newer: number) {
  return (Math.imul(older, 0x9e3779b1) ^ Math.imul(newer, 0x85ebca6b)) >>> (32 - TABLE_BITS)
}

/** One line for people. */
export function leakMessage({ secret, file, line, text }: Leak) {
  return `secret '${secret}' stands in ${file}:${line}, expected in no log or response: ${text}`
}

function registered(folder: string) {
  try {
    const lines = readFileSync(join(folder, LIST), 'utf8').trim().split('\n')
    return lines.map((line): Registered => JSON.parse(line))
  } catch {
    return []
  }
}

function spellings(value: string) {
  const bytes = Buffer.from(value)
  const forms = [
    value,
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    bytes.toString('hex'),
    // Without the last group, which depends on what follows the secret.
    bytes.toString('base64').slice(0, Math.floor(bytes.length / 3) * 4),
  ]
  return [...new Set(forms)].map((form) => Buffer.from(form))
}

function describe(content: Buffer, at: number, size: number, secret: string, file: string) {
  const line = content.subarray(0, at).toString('latin1').split('\n').length
  const before = content.subarray(Math.max(0, at - 60), at).toString('utf8')
  const after = content.subarray(at + size, at + size + 40).toString('utf8')
  const text = `${before.split('\n').at(-1)}…${after.split('\n')[0]}`
  return { secret, file, line, text }
}
