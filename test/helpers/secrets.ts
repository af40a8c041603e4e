import { randomBytes } from 'node:crypto'
import { registerSecret } from './leaks.ts'
import { runFolder } from './run-folder.ts'

/**
 * A random secret that is easy to recognize. It fails the run when it turns up in any transcript: a
 * server's output, a response, a stream, a page.
 */
export function secret(name: string): string {
  return keepSecret(name, `secret-${name}-${randomBytes(15).toString('hex')}`)
}

/** Registers a secret that was made elsewhere (a token shown once) and gives it back. */
export function keepSecret(name: string, value: string): string {
  if (value.length < 8)
    throw new Error(`secret '${name}' is too short to be searched for, use 8 characters`)
  registerSecret(runFolder(), name, value)
  return value
}
