import type { KeyObject } from 'node:crypto'
import type { Expected, SchemeRow } from '../../../../db/hooks/receive/providers.ts'

// What a scheme and a sender are. These are types alone: `signatures.ts` verifies, `presets/` has the senders.

/** A key of HMAC, where a text stands for its UTF-8 bytes, or a public key. */
export type Key = string | Buffer | KeyObject

/**
 * One way to sign. A provider names its scheme. It is never guessed from headers, because the
 * sender chooses those.
 */
export interface Scheme extends Omit<SchemeRow, keyof Places>, Places {
  /** Where the header may hold several signatures. */
  list?: SignatureList
  /** How a time is written, in Unix seconds when absent. */
  clock?: 'milliseconds' | 'RFC 3339'
  /** The member of the JSON that has the time of signing in milliseconds, where there is one. */
  timeMember?: string
  /** The form of the secret; text when absent, which stands for its UTF-8 bytes. */
  secret?: 'whsec' | 'hex' | 'public key' | 'credentials' | 'none'
  /** The sender makes the secret, so it has to be given. */
  isGiven?: true
  /** The receiver's status without a time; that of a missing signature when absent. */
  timeMissing?: 400
  /** The signature covers nothing of the event, or a few members only: it counts as a token. */
  covers?: 'caller' | 'members'
  /** A list whose first item is signed: a delivery with a second one is refused. */
  single?: string
  /** The header that lists the names of the signed headers, for `{headers}`. */
  signedHeaders?: string
  /** The signature is a JSON Web Token (HS256) of this issuer, with the SHA-256 of the body. */
  jwt?: { issuer: string; bodyHash: string }
  /** The key is the sender's own, and is fetched from it. */
  fetched?: CertificateKey | OpenIdKey | PlaidKey
  /** What an operator says of the deliveries; `true` where it has to be said. */
  asks?: Readonly<Partial<Record<keyof Expected, boolean>>>
  /** What an operator has said. */
  expected?: Expected
  /** A generic receiver's status for a wrong signature, 403 when absent. */
  refusal?: 401
  /** A generic receiver's status for an event that is stored, 202 when absent; 204 has no body. */
  answer?: 200 | 204
  /** How a check of the address is answered, which is no event. */
  handshake?: HandshakeName
  /** Several events may have the same bytes: a delivery without an id is a new event. */
  repeatsBytes?: true
}

/** The addresses that may be fetched: `https://`, then a host and a path of these forms. */
export interface AddressForm {
  host: RegExp
  path: RegExp
}

/** The key is in a certificate (RSA) at an address that the delivery names. */
export interface CertificateKey {
  kind: 'certificate'
  /** The header or member with the address. */
  at: string
  /** What the address may be. */
  from: AddressForm
  /** A member, and the algorithm by its value, where the sender has several. */
  versions?: {
    member: string
    algorithms: Readonly<Record<string, 'rsa-sha256' | 'rsa-sha1'>>
  }
  /** Members that are signed as lines, for `{lines}`: by the value of the member `by`. */
  lines?: { by: string; members: Readonly<Record<string, readonly string[]>> }
  subscription?: Subscription
}

/** Events belong to topics. A new topic sends an event first that asks to be confirmed. */
export interface Subscription {
  /** The member with the topic. */
  topic: string
  /** The member with the type of a message, and its value where it asks. */
  type: string
  asks: string
  /** The member with the address that confirms, and what it may be. */
  url: string
  from: AddressForm
}

/** A bearer token of OpenID Connect, by a key of its issuer. */
interface OpenIdKey {
  kind: 'openid'
  /** The operator names the issuer when absent. */
  issuer?: string
}

/** A token with the SHA-256 of the body, by a key that Plaid's API gives for its id. */
interface PlaidKey {
  kind: 'plaid'
  /** The address of the API's call. */
  address: string
  bodyHash: string
}

/** Several signatures in one header: each is preceded by the prefix, all else is ignored. */
interface SignatureList {
  separator: string
  /** Every part must fit, or have no space: a header that came twice, joined by `, `, does not. */
  part?: RegExp
  /** The text before the time, for headers that have the time, too. */
  time?: string
  /** A space may follow each separator; a header that came twice has two times then. */
  isSpaced?: true
}

/** Where deliveries say what they are. */
export interface Places {
  type: Place
  id: Place
}

/**
 * Where something stands in a delivery: the first of the headers that is there, else the first of
 * the members that the body has.
 */
export interface Place {
  headers: readonly string[]
  json: readonly Member[]
}

/**
 * A member by its path, such as `event.type`. In the path of an id `*` is each item of a list: a
 * delivery of several events has the ids of all. A list of paths are members that are one id
 * together.
 */
export type Member = string | readonly string[] | MemberName

/** The name of the first member of an object, apart from some: it says what happened. */
export interface MemberName {
  /** The path of the object; empty for the body itself. */
  nameIn: string
  apart: readonly string[]
}

/** The sender whose checks of an address are answered in the same way. */
export type HandshakeName =
  | 'slack'
  | 'discord'
  | 'twitch'
  | 'zoom'
  | 'asana'
  | 'meta'
  | 'dropbox'
  | 'trello'
  | 'microsoft-graph'
  | 'monday'
  | 'woocommerce'

/** A sender: how it signs, where its documents say so, and what is to be done there. */
export interface Preset {
  name: string
  title: string
  /** The address of its documentation. */
  docs: string
  /** What is to be done at the sender, in two sentences. */
  setup: string
  /**
   * What shows that the row is right: a vector that the sender has published, its own library, or
   * only what its document says.
   */
  tested: 'vector' | 'library' | 'document'
  scheme: Scheme | TokenScheme
}

/** A sender that proves itself by a token, which covers no byte: it is no signature. */
interface TokenScheme extends Places, Pick<Scheme, 'answer' | 'refusal' | 'handshake'> {
  /** Headers with the token, beside the places where every token may be. */
  token: readonly string[]
}
