import { causeOf, codeOf } from '../../kernel/log.ts'
import type { Address } from './address.ts'
import { mailOf, requestOf, type Message, type WebRequest } from './kinds.ts'

const TIMEOUT_MS = 10_000

/** The longest wait that a receiver may ask for. */
const MAX_WAIT_S = 3_600

/** Why a message was not taken, and how long its receiver asks to wait. */
export interface Refusal {
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
): Promise<Refusal | undefined> {
  const { kind } = address
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)])
  if (kind !== 'mail') return post(requestOf({ ...address, kind }, message), message.key, signal)
  // It takes memory: it is loaded where mail is sent.
  const { sendMail } = await import('./mail.ts')
  const problem = await sendMail(address, mailOf(message), message.key, signal)
  return problem === undefined ? undefined : { problem, waitMs: 0 }
}

async function post(
  { url, headers, body, takes }: WebRequest,
  key: string,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
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
    return { problem, waitMs: waitOf(response.headers.get('retry-after')) }
  } catch (error) {
    const cause = causeOf(error)
    const problem = codeOf(cause) ?? (cause instanceof Error ? cause.name : 'no connection')
    return { problem, waitMs: 0 }
  }
}

/** What `Retry-After` says in seconds or as a date, within a bound. */
function waitOf(text: string | null): number {
  if (text === null) return 0
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1_000
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), MAX_WAIT_S) * 1_000
}
