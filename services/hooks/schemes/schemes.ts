import type { Place, Provider, SchemeRow } from '../../../db/hooks/providers.ts'
import type { JsonObject } from '../../../kernel/json.ts'

/**
 * One way to sign. A provider names its scheme. It is never guessed from headers, because the
 * sender chooses those.
 */
export interface Scheme extends SchemeRow {
  /** Where the header may hold several signatures. */
  list?: SignatureList
  /** The member of the JSON that has the time of signing in milliseconds, where there is one. */
  timeMember?: string
  /** The form of the secret; text when absent, which stands for its UTF-8 bytes. */
  secret?: 'base64' | 'public key'
  /** The sender makes the secret, so it has to be given. */
  isGiven?: true
  /** The receiver's status without a time; that of a missing signature when absent. */
  timeMissing?: 400
  /** A generic receiver's status for a wrong signature, 403 when absent. */
  refusal?: 401
  /** Answers a check of the address, which is no event. */
  handshake?: (members: JsonObject) => Handshake | undefined
}

/** Several signatures in one header: each is preceded by the prefix, all else is ignored. */
interface SignatureList {
  separator: string
  /** Every part must fit: a header that came twice, joined by a comma and a space, does not. */
  part: RegExp
  /** The text before the time, for headers that have the time, too. */
  time?: string
}

/** The answer to a check of the address; without a reply its body is empty. */
export interface Handshake {
  status: 200 | 204
  reply?: JsonObject
}

/** Where deliveries say what they are. */
export type Places = Pick<SchemeRow, 'type' | 'id'>

function inHeaders(...headers: readonly string[]): Place {
  return { headers: [...headers], json: [] }
}

function inJson(...json: readonly string[]): Place {
  return { headers: [], json: [...json] }
}

/** Deliveries of any sender that is not named below. */
export const ANY: Places = {
  type: inHeaders('x-event-type'),
  id: inHeaders('webhook-id', 'x-delivery-id', 'idempotency-key'),
}

/** The token of GitLab authenticates its caller and covers no byte: it is no signature. */
const GITLAB: Places = { type: inHeaders('x-gitlab-event'), id: inHeaders('idempotency-key') }

/** HMAC-SHA256 of the body as lower-case hex. */
const HEX: Omit<SchemeRow, 'signature' | 'type' | 'id'> = {
  prefix: '',
  encoding: 'hex',
  algorithm: 'sha256',
  signed: '{body}',
  timestamp: [],
}

/** Every scheme that a provider can have. */
export const SCHEME_NAMES = [
  ...(['github', 'gitlab', 'gitea', 'stripe', 'slack', 'shopify', 'linear'] as const),
  ...(['standard', 'ed25519', 'hmac'] as const),
]
export type SchemeName = (typeof SCHEME_NAMES)[number]

/**
 * The three built-in providers are `github`, `stripe` and `slack` (hooks.md section 5); their
 * neutral names come first. An operator fills in `hmac`.
 */
const SCHEMES: Readonly<Record<Exclude<SchemeName, 'gitlab'>, Scheme>> = {
  github: {
    ...HEX,
    signature: ['x-codehost-signature-256', 'x-hub-signature-256'],
    prefix: 'sha256=',
    type: inHeaders('x-codehost-event', 'x-github-event'),
    id: inHeaders('x-codehost-delivery', 'x-github-delivery'),
  },
  gitea: {
    ...HEX,
    signature: ['x-gitea-signature'],
    type: inHeaders('x-gitea-event'),
    id: inHeaders('x-gitea-delivery'),
  },
  stripe: {
    ...HEX,
    signature: ['payments-signature', 'stripe-signature'],
    prefix: 'v1=',
    list: { separator: ',', part: /^\S*$/, time: 't=' },
    signed: '{timestamp}.{body}',
    type: inJson('type'),
    id: inJson('id'),
    isGiven: true,
  },
  slack: {
    ...HEX,
    signature: ['x-chat-signature', 'x-slack-signature'],
    prefix: 'v0=',
    signed: 'v0:{timestamp}:{body}',
    timestamp: ['x-chat-request-timestamp', 'x-slack-request-timestamp'],
    timeMissing: 400,
    type: inJson('event.type', 'type', 'command'),
    id: inJson('event_id', 'trigger_id'),
    isGiven: true,
    handshake: challenged,
  },
  shopify: {
    ...HEX,
    signature: ['x-shopify-hmac-sha256'],
    encoding: 'base64',
    type: inHeaders('x-shopify-topic'),
    // One change of a shop may be several deliveries with one event id.
    id: inHeaders('x-shopify-webhook-id', 'x-shopify-event-id'),
    isGiven: true,
  },
  linear: {
    ...HEX,
    signature: ['linear-signature'],
    timeMember: 'webhookTimestamp',
    type: inHeaders('linear-event'),
    id: inHeaders('linear-delivery'),
    isGiven: true,
  },
  /** https://www.standardwebhooks.com, and Svix, from which it comes. */
  standard: {
    signature: ['webhook-signature', 'svix-signature'],
    prefix: 'v1,',
    list: { separator: ' ', part: /^[^,]+,[^,]+$/ },
    encoding: 'base64',
    algorithm: 'sha256',
    signed: '{id}.{timestamp}.{body}',
    timestamp: ['webhook-timestamp', 'svix-timestamp'],
    type: ANY.type,
    id: inHeaders('webhook-id', 'svix-id'),
    secret: 'base64',
  },
  /** As Discord signs. */
  ed25519: {
    signature: ['x-signature-ed25519'],
    prefix: '',
    encoding: 'hex',
    algorithm: 'ed25519',
    signed: '{timestamp}{body}',
    timestamp: ['x-signature-timestamp'],
    type: inJson('event.type'),
    id: inJson('id'),
    secret: 'public key',
    isGiven: true,
    // Discord sends a wrong signature to each new address, and takes no other answer.
    refusal: 401,
    handshake: pinged,
  },
  hmac: { ...HEX, signature: ['x-signature'], ...ANY },
}

/** The schemes of the built-in providers. */
export const BUILT_IN = { code_host: 'github', payments: 'stripe', chat: 'slack' } as const

/** The scheme of a provider whose deliveries are signed. */
export function schemeOf({
  scheme,
  scheme_row: row,
}: Pick<Provider, 'scheme' | 'scheme_row'>): Scheme | undefined {
  return row ?? (scheme === null ? undefined : schemeNamed(scheme))
}

/** The scheme of a name; undefined for `gitlab`, which signs nothing, and for unknown names. */
export function schemeNamed(name: string): Scheme | undefined {
  return Object.hasOwn(SCHEMES, name) ? SCHEMES[name as keyof typeof SCHEMES] : undefined
}

/** Where a provider's deliveries say what they are. */
export function placesOf(provider: Pick<Provider, 'scheme' | 'scheme_row'>): Places {
  return schemeOf(provider) ?? (provider.scheme === 'gitlab' ? GITLAB : ANY)
}

/** Whether a delivery can't be understood without its JSON. */
export function needsJson({ type, id, timeMember, handshake }: Scheme): boolean {
  return type.json.length + id.json.length > 0 || (timeMember ?? handshake) !== undefined
}

/** Whether an event has its type from a header, which no signature covers. */
export function hasUnsignedType(
  { type }: Scheme,
  headers: Readonly<Record<string, string>>,
): boolean {
  return type.headers.some((name) => name in headers)
}

/** Slack's `url_verification` wants its challenge back. */
function challenged({ type, challenge }: JsonObject): Handshake | undefined {
  if (type !== 'url_verification') return undefined
  // A list as text could be deeper than the stack.
  return { status: 200, reply: { challenge: typeof challenge === 'string' ? challenge : '' } }
}

/** Discord's PING: of interactions it has type 1, of webhook events type 0. */
function pinged({ type, event }: JsonObject): Handshake | undefined {
  if (event !== undefined) return undefined
  if (type === 1) return { status: 200, reply: { type: 1 } }
  return type === 0 ? { status: 204 } : undefined
}
