import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { registerSecret } from '../runner/leaks.ts'
import { runFolder } from './program.ts'

/**
 * A random secret that is easy to recognize. It fails the run when it turns up in any transcript: a
 * server's output, a response, a stream, a page.
 */
export function secret(name: string) {
  return keepSecret(name, `secret-${name}-${randomBytes(15).toString('hex')}`)
}

/** Registers a secret that was made elsewhere (a token shown once) and gives it back. */
export function keepSecret(name: string, value: string) {
  if (value.length < 8)
    throw new Error(`secret '${name}' is too short to be searched for, use 8 characters`)
  registerSecret(runFolder(), name, value)
  return value
}

/** The secret that a page shows once, in the box with this id; it is registered. */
export function shownSecret({ text }: { text: string }, id: string, form = /[\w-]{43}/) {
  const found = new RegExp(`id="${id}"[^>]*><code>(${form.source})<`).exec(text)?.[1]
  if (found === undefined) throw new Error(`the page shows no secret of the form ${form.source}`)
  return keepSecret(id, found)
}

/** What a transcript holds; the file's ending, by which the search for secrets finds it. */
type TranscriptKind = 'log' | 'http' | 'sse' | 'html'

/**
 * Appends what the product wrote or answered to a file of this run, one per process and kind. At its
 * end the run searches these files for secrets.
 */
export function transcript(kind: TranscriptKind, content: string | Uint8Array, name = 'test') {
  appendFileSync(join(runFolder(), `${name}-${process.pid}.${kind}`), content)
}
