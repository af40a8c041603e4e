import { SECRET_PREFIX } from './keys.ts'
import { PRESETS } from './presets/presets.ts'
import type { Member, Place, Preset, Scheme } from './scheme.ts'
import { schemeNamed } from './schemes.ts'

// Words about schemes, for operators.

/** A sender as the command and the page show it. */
export interface SenderInfo {
  name: string
  title: string
  docs: string
  /** How far its events are trusted: a token proves their caller, and covers no byte of them. */
  trust_mode: 'signed' | 'token'
  /** What is verified, in words. */
  verifies: string
  /** Where its deliveries have the type and the id of an event, in words. */
  type: string
  id: string
  setup: string
  /** What shows that it is right. */
  tested: string
}

const ALGORITHMS = {
  sha256: 'HMAC-SHA256',
  sha512: 'HMAC-SHA512',
  sha1: 'HMAC-SHA1',
  ed25519: 'Ed25519',
  p256: 'ECDSA P-256',
  'rsa-sha256': 'RSA-SHA256',
  'rsa-sha1': 'RSA-SHA1',
}

const TESTED = {
  vector: 'published vector',
  library: "sender's library",
  document: 'by document',
}

/** The schemes that most people add, in the order in which they are offered. */
const COMMON = ['github', 'gitlab', 'stripe', 'slack', 'shopify', 'standard', 'hmac']

/** The senders that most people add, and all others in the order of the titles. */
export function senderGroups(): { common: readonly SenderInfo[]; others: readonly SenderInfo[] } {
  const all = listSenders()
  return {
    common: COMMON.flatMap((name) => all.filter((sender) => sender.name === name)),
    others: all.filter(({ name }) => !COMMON.includes(name)),
  }
}

/** Every sender, in the order of the titles. */
export function listSenders(): readonly SenderInfo[] {
  return PRESETS.map(senderInfo).toSorted((a, b) => a.title.localeCompare(b.title, 'en'))
}

export function senderInfo({ name, title, docs, setup, tested, scheme }: Preset): SenderInfo {
  const isSigned = 'signature' in scheme && scheme.covers === undefined
  return {
    name,
    title,
    docs,
    setup,
    trust_mode: isSigned ? 'signed' : 'token',
    verifies: verifies(scheme),
    type: placeText(scheme.type) ?? 'none',
    id:
      placeText(scheme.id) ??
      ('signature' in scheme && !scheme.repeatsBytes ? 'its bytes' : 'none'),
    tested: TESTED[tested],
  }
}

/** Headers and members in words, such as `header x-event-key or type`; undefined without any. */
function placeText({ headers, json }: Place): string | undefined {
  const names = [...headers.map((name) => `header ${name}`), ...json.map(memberText)]
  return names.length === 0 ? undefined : names.join(' or ')
}

function memberText(member: Member): string {
  if (typeof member === 'string') return member
  if (!('nameIn' in member)) return member.join(' + ')
  const apart = member.apart.length === 0 ? '' : ` beside ${member.apart.join(', ')}`
  const place = member.nameIn === '' ? '' : ` in ${member.nameIn}`
  return `name of the member${place}${apart}`
}

/** What an operator should know of a scheme at a glance: that it is weaker than others. */
export function schemeNote(preset: Preset | undefined): string | null {
  if (preset === undefined) return null
  if (senderInfo(preset).trust_mode === 'token') return 'token'
  return 'signature' in preset.scheme && preset.scheme.algorithm === 'sha1' ? 'SHA-1' : null
}

function verifies(scheme: Preset['scheme']): string {
  if (!('signature' in scheme)) return 'a token, no signature'
  const algorithm = ALGORITHMS[scheme.algorithm]
  if (scheme.covers === 'members') return `${algorithm} of some members, not of the rest`
  const text = `${algorithm} of ${scheme.signed.replaceAll('\n', '\\n')}`
  return scheme.covers === 'caller' ? `${text}, not of the event` : text
}

const TEXT_FORM = '8 to 256 characters on one line'
const KEY_FORMS = {
  ed25519: 'the public key of the sender, 64 hex digits or 32 bytes as base64',
  p256: 'the public key of the sender, as base64',
}

/** The accepted form of a scheme's secret, in words. */
export function secretForm(name: string | null): string {
  const scheme = schemeNamed(name)
  if (scheme?.secret === 'public key') {
    return KEY_FORMS[scheme.algorithm === 'p256' ? 'p256' : 'ed25519']
  }
  if (scheme?.secret === 'credentials') return 'CLIENT_ID:SECRET of the API of the sender'
  if (scheme?.secret === 'hex') return '32 to 128 hex digits'
  const isStandard = scheme?.secret === 'whsec'
  return isStandard ? `"${SECRET_PREFIX}" and then 24 to 64 bytes as base64` : TEXT_FORM
}

/** Whether an event has its type from a header, which no signature covers. */
export function hasUnsignedType(
  { type }: Scheme,
  headers: Readonly<Record<string, string>>,
): boolean {
  return type.headers.some((name) => name in headers)
}
