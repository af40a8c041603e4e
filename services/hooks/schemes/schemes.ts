import type { Provider, SchemeRow } from '../../../db/hooks/providers.ts'
import type { HandshakeName } from './handshakes.ts'
import { PRESETS, type Preset } from './presets/presets.ts'

/**
 * One way to sign. A provider names its scheme. It is never guessed from headers, because the
 * sender chooses those.
 */
export interface Scheme extends SchemeRow {
  /** Where the header may hold several signatures. */
  list?: SignatureList
  /** How a time is written, in Unix seconds when absent. */
  clock?: 'milliseconds' | 'RFC 3339'
  /** The member of the JSON that has the time of signing in milliseconds, where there is one. */
  timeMember?: string
  /** The form of the secret; text when absent, which stands for its UTF-8 bytes. */
  secret?: 'whsec' | 'hex' | 'public key'
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
  /** A generic receiver's status for a wrong signature, 403 when absent. */
  refusal?: 401
  /** A generic receiver's status for an event that is stored, 202 when absent; 204 has no body. */
  answer?: 200 | 204
  /** How a check of the address is answered, which is no event. */
  handshake?: HandshakeName
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
export type Places = Pick<SchemeRow, 'type' | 'id'>

/** Deliveries of any sender whose scheme is not known. */
export const ANY: Places = {
  type: { headers: ['x-event-type'], json: [] },
  id: { headers: ['webhook-id', 'x-delivery-id', 'idempotency-key'], json: [] },
}

const BY_NAME = new Map(PRESETS.map((preset) => [preset.name, preset]))

/** Every scheme that a provider can have. */
export const SCHEME_NAMES: readonly string[] = PRESETS.map(({ name }) => name)

/** The schemes of the built-in providers (hooks.md section 5). */
export const BUILT_IN = { code_host: 'github', payments: 'stripe', chat: 'slack' } as const

type Named = Pick<Provider, 'scheme' | 'scheme_row'>

/** What is known of the sender with a scheme. */
export function presetNamed(name: string | null): Preset | undefined {
  return name === null ? undefined : BY_NAME.get(name)
}

/** The scheme of a provider whose deliveries are signed, with what its operator has changed. */
export function schemeOf({ scheme, scheme_row: row }: Named): Scheme | undefined {
  const found = schemeNamed(scheme)
  return found && { ...found, ...row }
}

/** The scheme of a name; undefined for a sender that signs nothing, and for unknown names. */
export function schemeNamed(name: string | null): Scheme | undefined {
  const { scheme } = presetNamed(name) ?? {}
  return scheme && 'signature' in scheme ? scheme : undefined
}

/** Where a provider's deliveries say what they are. */
export function placesOf({ scheme, scheme_row: row }: Named): Places {
  return { ...(presetNamed(scheme)?.scheme ?? ANY), ...row }
}

/** Whether a delivery can't be understood without its JSON. */
export function needsJson({
  type,
  id,
  timeMember,
  handshake,
}: Places & Pick<Scheme, 'timeMember' | 'handshake'>): boolean {
  return type.json.length + id.json.length > 0 || (timeMember ?? handshake) !== undefined
}
