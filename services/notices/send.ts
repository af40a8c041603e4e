import { fetchProblem } from '../../kernel/log.ts'
import { readRetryAfter } from '../../kernel/net/retry-after.ts'
import type { Address } from './address.ts'
import { mailOf, requestOf, type Message, type WebRequest } from './kinds.ts'

const TIMEOUT_MS = 10_000

/** The longest wait that a receiver may ask for. */
const MAX_WAIT_S = 3_600

/** Why a message was not taken, and how long its receiver asks to wait. */
interface FailedSend {
  problem: string
  waitMs: number
}

/**
 * Sends a message to an address. Gives why it was not taken, or undefined. Never quotes the
 * address: it may contain a key.
 */
export async function sendMessage(
  address: Address,
  message: Message,
  stopping: AbortSignal,
): Promise<FailedSend | undefined> {
  const { kind } = address
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)])
  if (kind !== 'mail') return post(requestOf({ ...address, kind }, message), message.key, signal)
  // It takes memory: it is loaded where mail is sent.
  const { sendMail } = await import('./mail.ts')
  const problem = await sendMail(address, mailOf(message), signal)
  return problem === undefined ? undefined : { problem, waitMs: 0 }
}

async function post(
  { url, headers, body, takes }: WebRequest,
  key: string,
  signal: AbortSignal,
): Promise<FailedSend | undefined> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'user-agent': 'gatehouse', 'idempotency-key': key },
      body,
      redirect: 'error',
      signal,
    })
    await response.body?.cancel()
    if (takes(response.status)) return undefined
    const problem = `the receiver answered ${response.status}`
    const asked = response.headers.get('retry-after') ?? undefined
    const waitMs = readRetryAfter(asked, new Date(), MAX_WAIT_S)
    return { problem, waitMs: waitMs ?? 0 }
  } catch (error) {
    return { problem: fetchProblem(error), waitMs: 0 }
  }
}
