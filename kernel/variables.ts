import { resolve } from 'node:path'
import Type from 'typebox'
import { parseAddress, type Address } from './address.ts'
import { parseHosts } from './hosts.ts'
import { parseBlocks, type AddressSet } from './peers.ts'
import { parseSecretKey } from './secret-box.ts'

/** How a variable's text is read: `form` says in words what is accepted; a read throws SyntaxError. */
interface Reading<T> {
  readonly form: string
  readonly read: (text: string) => T
  /** A secret may also come from a systemd credential and never from a flag. */
  readonly secret?: true
  readonly default?: string
}

function variable<T>({ read, ...notes }: Reading<T>): Type.TCodec<Type.TString, T> {
  return Type.Codec(Type.String(notes)).Decode(read).Encode(String)
}

const secret = (form: string): Type.TOptional<Type.TCodec<Type.TString, string>> =>
  Type.Optional(variable({ form, secret: true, read: (text) => text }))

const address = (fallback: string): Type.TCodec<Type.TString, Address> =>
  variable({ form: 'host:port, unix:/path or fd:NAME', read: parseAddress, default: fallback })

const baseUrl = Type.Optional(
  variable({ form: 'an http:// or https:// URL without a path', read: parseBaseUrl }),
)

/**
 * Every variable of the program (decisions.md section 1). The name in lower case with dashes, without
 * `GATEHOUSE_`, is its flag: `HOOKS_ADDR` is `--hooks-addr`, `GATEHOUSE_DATA_DIR` is `--data-dir`.
 */
export const Variables = Type.Object({
  DATABASE_URL: Type.Optional(
    variable({
      form: 'a postgres:// URL; unset for the embedded database',
      secret: true,
      read: parseDatabaseUrl,
    }),
  ),
  GATEHOUSE_DATA_DIR: variable({
    form: 'a folder',
    read: (text) => resolve(text),
    default: './data',
  }),
  HOOKS_ADDR: address('127.0.0.1:8080'),
  LINKS_ADDR: address('127.0.0.1:8081'),
  OPS_ADDR: address('127.0.0.1:8082'),
  HOOKS_BASE_URL: baseUrl,
  LINKS_BASE_URL: baseUrl,
  OPS_BASE_URL: baseUrl,
  GATEHOUSE_TRUSTED_PROXIES: Type.Optional(
    variable({ form: 'a comma-separated list of CIDR blocks', read: parseProxies }),
  ),
  GATEHOUSE_USER_HEADER: variable({
    form: 'the name of a request header',
    read: parseHeaderName,
    default: 'Remote-Email',
  }),
  HOOKS_CODE_HOST_SECRET: secret('the shared secret, the whole value'),
  HOOKS_CODE_HOST_SECRET_PREVIOUS: secret('the secret being retired'),
  HOOKS_PAYMENTS_SECRET: secret('the shared secret, the whole value'),
  HOOKS_PAYMENTS_SECRET_PREVIOUS: secret('the secret being retired'),
  HOOKS_CHAT_SECRET: secret('the shared secret, the whole value'),
  HOOKS_CHAT_SECRET_PREVIOUS: secret('the secret being retired'),
  GATEHOUSE_SECRET_KEY: Type.Optional(
    variable({
      form: '32 bytes as base64, as openssl rand -base64 32 prints them',
      secret: true,
      read: parseSecretKey,
    }),
  ),
  HOOKS_ROTATION_OVERLAP_S: variable({
    form: 'a whole number of seconds from 0 (the old secret stops at once) to 2592000',
    read: (text) => parseSeconds(text, 0, 2_592_000),
    default: '86400',
  }),
  HOOKS_MAX_BODY: variable({
    form: 'a size from 1 to 100 MiB, such as 25MiB, 512KiB or 1000',
    read: parseSize,
    default: '25MiB',
  }),
  HOOKS_FRESHNESS_S: variable({
    form: 'a whole number of seconds from 1 to 86400',
    read: (text) => parseSeconds(text, 1, 86_400),
    default: '300',
  }),
  HOOKS_REPLAY_TARGETS: Type.Optional(
    variable({ form: 'a comma-separated list of host or host:port', read: parseHosts }),
  ),
  HOOKS_QUEUE_URL: Type.Optional(
    variable({
      form: 'a redis:// or rediss:// URL',
      secret: true,
      read: parseQueueUrl,
    }),
  ),
  HOOKS_QUEUE_CHANNELS: Type.Optional(
    variable({
      form: 'a comma-separated list of stream names without spaces, 200 characters each at most',
      read: parseChannels,
    }),
  ),
  LINKS_SHORT_KEYWORD: Type.Optional(
    variable({ form: 'a host name such as go', read: parseKeyword }),
  ),
})
export type Config = Type.StaticDecode<typeof Variables>
export type VariableName = keyof Config

/** The notes that a variable's schema carries beside its type. */
export interface VariableNotes {
  readonly form: string
  readonly secret?: true
  readonly default?: string
}

/** The flag of a variable, without the dashes in front. */
export function flagOf(name: string): string {
  return name
    .replace(/^GATEHOUSE_/, '')
    .toLowerCase()
    .replaceAll('_', '-')
}

function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const plain =
    url !== undefined && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === ''
  if (!plain || url.username !== '') throw new SyntaxError('it is no such URL')
  return url.origin
}

function parseDatabaseUrl(text: string): string {
  if (!/^postgres(ql)?:\/\//.test(text)) throw new SyntaxError('it does not start with postgres://')
  return text
}

function parseQueueUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^rediss?:$/.test(url.protocol) || url.hostname === '') {
    throw new SyntaxError('it is no such URL')
  }
  if (!/^(\/\d{0,3})?$/.test(url.pathname)) throw new SyntaxError('its path is no database number')
  // Throws URIError where the broker's client would: at a % that starts no encoded byte.
  decodeURIComponent(url.username + url.password)
  return text
}

function parseChannels(text: string): readonly string[] {
  const channels = text.split(',').map((channel) => channel.trim())
  if (!channels.every((channel) => /^[^\p{C}\p{Z}]{1,200}$/u.test(channel))) {
    throw new SyntaxError('a name in it is empty, too long or has a space')
  }
  return [...new Set(channels)]
}

function parseHeaderName(text: string): string {
  if (!/^[A-Za-z0-9-]{1,100}$/.test(text)) throw new SyntaxError('it is no such name')
  return text.toLowerCase()
}

function parseKeyword(text: string): string {
  if (!/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/i.test(text))
    throw new SyntaxError('it is no such name')
  return text.toLowerCase()
}

function parseProxies(text: string): AddressSet {
  return parseBlocks(text.split(',').map((block) => block.trim()))
}

function parseSize(text: string): number {
  const match = /^(\d{1,9})(B|KiB|MiB)?$/.exec(text)
  const unit = { B: 1, KiB: 1024, MiB: 1024 * 1024 }[match?.[2] ?? 'B'] ?? 1
  const size = Number(match?.[1]) * unit
  if (!(size >= 1 && size <= 100 * 1024 * 1024)) throw new RangeError('it is no such size')
  return size
}

function parseSeconds(text: string, least: number, most: number): number {
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : -1
  if (seconds < least || seconds > most) throw new RangeError('it is no such number')
  return seconds
}
