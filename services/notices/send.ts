import { causeOf, codeOf } from '../../kernel/log.ts'
import type { Address } from './address.ts'
import { mailOf, requestOf, type Message, type WebRequest } from './kinds.ts'

const TIMEOUT_MS = 10_000

/**
 * Sends a message to an address. Gives why it was not taken, or undefined. Never quotes the
 * address: it may contain a key.
 */
export async function sendMessage(
  address: Address,
  message: Message,
  stopping: AbortSignal,
): Promise<string | undefined> {
  const { kind } = address
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)])
  if (kind !== 'mail') return post(requestOf({ ...address, kind }, message), message.key, signal)
  // It takes memory: it is loaded where mail is sent.
  const { sendMail } = await import('./mail.ts')
  return sendMail(address, mailOf(message), message.key, signal)
}

async function post(
  { url, headers, body, takes }: WebRequest,
  key: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'user-agent': 'gatehouse', 'idempotency-key': key },
      body,
      redirect: 'error',
      signal,
    })
    await response.body?.cancel()
    return takes(response.status) ? undefined : `the receiver answered ${response.status}`
  } catch (error) {
    const cause = causeOf(error)
    return codeOf(cause) ?? (cause instanceof Error ? cause.name : 'no connection')
  }
}
