import { createTransport } from 'nodemailer'
import { codeOf } from '../../kernel/log.ts'
import type { Address } from './address.ts'
import type { Mail } from './kinds.ts'

/** Shorter than the limit of a message (`send.ts`), so that the reason names the failed step. */
const TIMEOUT_MS = 8_000

/**
 * Sends a mail over SMTP. Gives why the server did not take it, or undefined. A connection without
 * TLS is upgraded (STARTTLS) unless the address says `tls=no`: otherwise somebody between here and
 * the server could read the password.
 */
export async function sendMail(
  { url, token }: Address,
  { id, subject, text }: Mail,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { protocol, hostname, port, username, password, searchParams } = new URL(url)
  const secure = protocol === 'smtps:'
  const plain = searchParams.get('tls') === 'no'
  const user = decodeURIComponent(username)
  const pass = token ?? decodeURIComponent(password)
  const transport = createTransport({
    host: hostname.replace(/^\[|\]$/g, ''),
    ...(port !== '' && { port: Number(port) }),
    secure,
    requireTLS: !secure && !plain,
    ignoreTLS: plain,
    ...(user !== '' && { auth: { user, pass } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
    // A text is a text: what looks like a file or a URL is not read.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const from = searchParams.get('from') ?? ''
  const to = (searchParams.get('to') ?? '').split(',')
  const aborted = Promise.withResolvers<never>()
  const end = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', end)
  try {
    // Two sends of one notice have one id, by which a server or a reader finds the second.
    const messageId = `<${id}.${from}>`
    const sent = transport.sendMail({ from, to, subject, text, messageId })
    await Promise.race([sent, aborted.promise])
    return undefined
  } catch (error) {
    return problemOf(error)
  } finally {
    signal.removeEventListener('abort', end)
    transport.close()
  }
}

/** The server's number, without its words: they may quote the address. */
function problemOf(error: unknown): string {
  const status = error instanceof Error && 'responseCode' in error ? error.responseCode : undefined
  if (typeof status === 'number') return `the mail server answered ${status}`
  return codeOf(error) ?? (error instanceof Error ? error.name : 'no connection')
}
