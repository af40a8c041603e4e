import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const LIST = 'secrets.ndjson'
const TRANSCRIPTS = /\.(log|http|sse|html)$/

/** A place where a secret was written: never with its value. */
export type Leak = { secret: string; file: string; line: number; text: string }

type Registered = { name: string; value: string }

/** Adds a value to what must not appear in any transcript of the run in `folder`. */
export function registerSecret(folder: string, name: string, value: string): void {
  appendFileSync(join(folder, LIST), `${JSON.stringify({ name, value } satisfies Registered)}\n`)
}

/**
 * Every line of the run's transcripts that holds a registered secret, as it is or in base64, hex or
 * URL encoding. The line is cut to the words around it and the secret is blanked.
 */
export function findLeaks(folder: string): readonly Leak[] {
  const needles = registered(folder).flatMap(({ name, value }) =>
    spellings(value).map((bytes) => ({ name, bytes })),
  )
  const leaks: Leak[] = []
  for (const file of readdirSync(folder).filter((entry) => TRANSCRIPTS.test(entry))) {
    const content = readFileSync(join(folder, file))
    for (const { name, bytes } of needles) {
      const at = content.indexOf(bytes)
      if (at >= 0) leaks.push(describe(content, at, bytes.length, name, file))
    }
  }
  return leaks
}

/** One line for people. */
export function leakMessage({ secret, file, line, text }: Leak): string {
  return `secret '${secret}' stands in ${file}:${line}, expected in no log or response: ${text}`
}

function registered(folder: string): readonly Registered[] {
  try {
    const lines = readFileSync(join(folder, LIST), 'utf8').trim().split('\n')
    return lines.map((line): Registered => JSON.parse(line))
  } catch {
    return []
  }
}

function spellings(value: string): readonly Buffer[] {
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

function describe(content: Buffer, at: number, size: number, secret: string, file: string): Leak {
  const line = content.subarray(0, at).toString('latin1').split('\n').length
  const before = content.subarray(Math.max(0, at - 60), at).toString('utf8')
  const after = content.subarray(at + size, at + size + 40).toString('utf8')
  const text = `${before.split('\n').at(-1)}…${after.split('\n')[0]}`
  return { secret, file, line, text }
}
