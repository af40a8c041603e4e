import type { HandshakeName, Key } from './scheme.ts'
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { objectOf, type JsonObject } from '../../../../kernel/json.ts'

// Answers to checks of an address, as each sender asks for them. A check is no event.

/** An answer that is no acknowledgement of the contract; without a body it is empty. */
export interface PlainAnswer {
  status: number
  /** Of the body, or what the sender wants to see without one. */
  type?: 'application/json' | 'application/xml' | 'text/plain' | 'text/plain; charset=utf-8'
  body?: string
  headers?: Readonly<Record<string, string>>
}

/** A check that a signature or a token has proven. */
interface VerifiedCheck {
  headers: IncomingHttpHeaders
  members: JsonObject
  /** The key of the signature. */
  key?: Key | undefined
}

type Answer = (check: VerifiedCheck) => PlainAnswer | undefined

const VERIFIED: Partial<Record<HandshakeName, Answer>> = {
  /** `url_verification` wants its challenge back. */
  slack({ members: { type, challenge } }) {
    if (type !== 'url_verification') return undefined
    // A list as text could be deeper than the stack.
    return json({ challenge: typeof challenge === 'string' ? challenge : '' })
  },

  /** The challenge is the only member. */
  monday({ members: { challenge, ...others } }) {
    return isShort(challenge) && Object.keys(others).length === 0 ? json({ challenge }) : undefined
  },

  /** PING: of interactions it has type 1, of webhook events type 0. */
  discord({ members: { type, event } }) {
    if (event !== undefined) return undefined
    if (type === 1) return json({ type: 1 })
    return type === 0 ? { status: 204, type: 'application/json' } : undefined
  },

  twitch({ headers, members: { challenge } }) {
    if (headers['twitch-eventsub-message-type'] !== 'webhook_callback_verification') {
      return undefined
    }
    return plain(challenge)
  },

  /** Zoom wants its token back, with the HMAC of it. */
  zoom({ members: { event, payload }, key }) {
    const { plainToken } = objectOf(payload)
    if (event !== 'endpoint.url_validation' || !isShort(plainToken)) return undefined
    if (key === undefined || !(typeof key === 'string' || Buffer.isBuffer(key))) return undefined
    const encryptedToken = createHmac('sha256', key).update(plainToken).digest('hex')
    return json({ plainToken, encryptedToken })
  },
}

/** Answers a check that is proven as an event is; undefined for an event. */
export function answerVerified(
  name: HandshakeName | undefined,
  check: VerifiedCheck,
): PlainAnswer | undefined {
  return name === undefined ? undefined : VERIFIED[name]?.(check)
}

/** A request as it comes, before anything is proven. */
interface Unproven {
  method: string
  headers: IncomingHttpHeaders
  /** The query's text. */
  search: string
}

const UNSIGNED: Partial<Record<HandshakeName, (check: Unproven) => PlainAnswer | undefined>> = {
  /** The verify token proves nothing that the signatures of the events do not. */
  meta({ method, search }) {
    const query = new URLSearchParams(search)
    if (method !== 'GET' || query.get('hub.mode') !== 'subscribe') return undefined
    return plain(query.get('hub.challenge'))
  },

  dropbox({ method, search }) {
    return method === 'GET' ? plain(new URLSearchParams(search).get('challenge')) : undefined
  },

  trello({ method }) {
    return method === 'HEAD' ? { status: 200 } : undefined
  },

  /** The first request has the secret of all others; the operator gets it from Asana's answer. */
  asana({ method, headers }) {
    const secret = headers['x-hook-secret']
    if (method !== 'POST' || headers['x-hook-signature'] !== undefined) return undefined
    return isShort(secret) ? { status: 200, headers: { 'X-Hook-Secret': secret } } : undefined
  },

  /** Of a new webhook: it is not signed, and any other status is shown as an error. */
  woocommerce({ method, headers }) {
    const isSigned = headers['x-wc-webhook-signature'] !== undefined
    const isPing = !isSigned && /^WooCommerce\/\S+ Hookshot /.test(headers['user-agent'] ?? '')
    return method === 'POST' && isPing ? { status: 200 } : undefined
  },

  'microsoft-graph'({ method, search }) {
    if (method !== 'POST' || !search.includes('validationToken=')) return undefined
    return plain(new URLSearchParams(search).get('validationToken'))
  },
}

/**
 * Answers a check that no signature proves: what comes is sent back, and nothing is stored.
 * Undefined for all other requests.
 */
export function answerUnsigned(
  name: HandshakeName | undefined,
  check: Unproven,
): PlainAnswer | undefined {
  return name === undefined ? undefined : UNSIGNED[name]?.(check)
}

function json(reply: JsonObject): PlainAnswer {
  return { status: 200, type: 'application/json', body: JSON.stringify(reply) }
}

function plain(text: unknown): PlainAnswer | undefined {
  return isShort(text) ? { status: 200, type: 'text/plain', body: text } : undefined
}

/** What is sent back is bounded, and of one line. */
function isShort(text: unknown): text is string {
  return typeof text === 'string' && /^[\x20-\x7e]{1,1024}$/.test(text)
}
