import type { SchemeRow } from '../../../../../db/hooks/receive/providers.ts'
import type { Place, Scheme } from '../scheme.ts'

// What many senders have in common.

/** The event says no type, or has no id. */
export const NOWHERE: Place = { headers: [], json: [] }

/** The usual members of a JSON event. */
export const TYPE: Place = { headers: [], json: ['type'] }
export const ID: Place = { headers: [], json: ['id'] }
export const EVENT: Place = { headers: [], json: ['event'] }

type Way = Omit<SchemeRow, 'signature' | 'type' | 'id'>

/** HMAC-SHA256 of the body as lower-case hex. */
export const HEX: Way = {
  prefix: '',
  encoding: 'hex',
  algorithm: 'sha256',
  signed: '{body}',
  timestamp: [],
}

/** The same as base64. */
export const BASE64: Way = { ...HEX, encoding: 'base64' }

/** The same with the name of the hash before it. */
export const SHA256_HEX: Way = { ...HEX, prefix: 'sha256=' }

/** A time and signatures in one header, as Stripe has it. */
export const STAMPED: Way & Pick<Scheme, 'list'> = {
  ...HEX,
  prefix: 'v1=',
  list: { separator: ',', time: 't=' },
  signed: '{timestamp}.{body}',
}

/** Standard Webhooks, and Svix, from which it comes. */
export const STANDARD_WEBHOOKS: Scheme = {
  signature: ['webhook-signature', 'svix-signature'],
  prefix: 'v1,',
  list: { separator: ' ', part: /^[^,]+,[^,]+$/ },
  encoding: 'base64',
  algorithm: 'sha256',
  signed: '{id}.{timestamp}.{body}',
  timestamp: ['webhook-timestamp', 'svix-timestamp'],
  type: { headers: ['x-event-type'], json: ['type'] },
  id: { headers: ['webhook-id', 'svix-id'], json: [] },
  secret: 'whsec',
}

/** A bearer token of OpenID, which covers no byte of the event. */
export const BEARER: Way & Pick<Scheme, 'signature' | 'secret' | 'covers' | 'refusal'> = {
  ...HEX,
  signature: ['authorization'],
  prefix: 'Bearer ',
  encoding: 'base64url',
  algorithm: 'rsa-sha256',
  signed: '{token}',
  secret: 'none',
  covers: 'caller',
  refusal: 401,
}

export const PAYPAL_PATH = /^\/v1\/notifications\/certs\/[\w-]{1,128}$/

/** PayPal: the addresses of certificates are those of one environment. */
export const PAYPAL: Scheme = {
  ...BASE64,
  signature: ['paypal-transmission-sig'],
  algorithm: 'rsa-sha256',
  signed: '{header:paypal-transmission-id}|{header:paypal-transmission-time}|{secret}|{crc32}',
  type: { headers: [], json: ['event_type'] },
  id: ID,
  isGiven: true,
  fetched: {
    kind: 'certificate',
    at: 'paypal-cert-url',
    from: { host: /^api\.paypal\.com$/, path: PAYPAL_PATH },
  },
  refusal: 401,
  answer: 200,
}

/** Plaid: its API, which gives the keys, is that of one environment. */
export const PLAID: Scheme = {
  ...HEX,
  signature: ['plaid-verification'],
  encoding: 'base64url',
  algorithm: 'p256',
  signed: '{token}',
  type: { headers: [], json: ['webhook_code'] },
  id: NOWHERE,
  secret: 'credentials',
  isGiven: true,
  fetched: {
    kind: 'plaid',
    address: 'https://production.plaid.com/webhook_verification_key/get',
    bodyHash: 'request_body_sha256',
  },
  refusal: 401,
  answer: 200,
}

/** The hosts of Amazon SNS, one a region. */
export const SNS_HOST = /^sns\.[a-z]{2,4}(?:-[a-z]{2,12}){1,3}-\d{1,2}\.amazonaws\.com(?:\.cn)?$/

/** The lines that Amazon SNS signs of a notification, and of what asks for a confirmation. */
export const SNS_NOTIFICATION = [
  'Message',
  'MessageId',
  'Subject',
  'Timestamp',
  'TopicArn',
  'Type',
]
export const SNS_SUBSCRIPTION = [
  'Message',
  'MessageId',
  'SubscribeURL',
  'Timestamp',
  'Token',
  'TopicArn',
  'Type',
]

/** Discord, whose way the contract names `ed25519`. */
export const DISCORD: Scheme = {
  signature: ['x-signature-ed25519'],
  prefix: '',
  encoding: 'hex',
  algorithm: 'ed25519',
  signed: '{timestamp}{body}',
  timestamp: ['x-signature-timestamp'],
  type: { headers: [], json: ['event.type'] },
  id: ID,
  secret: 'public key',
  isGiven: true,
  // Discord sends a wrong signature to each new address, and takes no other answer.
  refusal: 401,
  answer: 204,
  handshake: 'discord',
}

/** The one event in a standard webhook of Adyen, and what is signed of it. */
export const ADYEN_ITEM = 'notificationItems.0.NotificationRequestItem'
export const ADYEN_MEMBERS =
  `{json:${ADYEN_ITEM}.pspReference}:{json:${ADYEN_ITEM}.originalReference}:` +
  `{json:${ADYEN_ITEM}.merchantAccountCode}:{json:${ADYEN_ITEM}.merchantReference}:` +
  `{json:${ADYEN_ITEM}.amount.value}:{json:${ADYEN_ITEM}.amount.currency}:` +
  `{json:${ADYEN_ITEM}.eventCode}:{json:${ADYEN_ITEM}.success}`
