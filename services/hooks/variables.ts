import { HOSTS_FORM, parseHosts } from '../../kernel/net/addresses.ts'
import { integer, address, baseUrl, secret, type Variables } from '../../kernel/variables.ts'
import { API_URL, API_URLS, readSources, SOURCES_FORM } from './receive/recoveries/sources.ts'

/** The variables that `forward --exec` gives a program, beside those of the service. */
export const EVENT_VARIABLES = {
  id: 'GATEHOUSE_EVENT_ID',
  type: 'GATEHOUSE_EVENT_TYPE',
  provider: 'GATEHOUSE_EVENT_PROVIDER',
  headers: 'GATEHOUSE_EVENT_HEADERS',
}

const MAX_SIZE = 100 * 1024 * 1024

/** The variables of the hooks service. */
export const hooksVariables = {
  HOOKS_ADDR: address('127.0.0.1:8080'),
  HOOKS_BASE_URL: baseUrl,
  HOOKS_CODE_HOST_SECRET: secret('the shared secret, the whole value'),
  HOOKS_CODE_HOST_SECRET_PREVIOUS: secret('the secret being retired'),
  HOOKS_PAYMENTS_SECRET: secret('the shared secret, the whole value'),
  HOOKS_PAYMENTS_SECRET_PREVIOUS: secret('the secret being retired'),
  HOOKS_CHAT_SECRET: secret('the shared secret, the whole value'),
  HOOKS_CHAT_SECRET_PREVIOUS: secret('the secret being retired'),
  GATEHOUSE_SECRET_KEY: {
    form: '32 bytes as base64, as openssl rand -base64 32 prints them',
    counts: 'at once',
    secret: true,
    read: parseSecretKey,
  },
  HOOKS_ROTATION_OVERLAP_S: {
    ...integer({ min: 0, max: 2_592_000 }),
    form: 'a whole number of seconds from 0 (the old secret stops at once) to 2592000',
    counts: 'at once',
    default: '86400',
  },
  HOOKS_MAX_BODY: {
    form: 'a size from 1 to 100 MiB, such as 25MiB, 512KiB or 1000',
    counts: 'at once',
    read: parseSize,
    default: '25MiB',
  },
  HOOKS_FRESHNESS_S: {
    ...integer({ min: 1, max: 86_400, of: 'seconds' }),
    counts: 'at once',
    default: '300',
  },
  HOOKS_REPLAY_TARGETS: { form: HOSTS_FORM, counts: 'at once', read: parseHosts },
  HOOKS_QUEUE_URL: {
    form: 'a redis:// or rediss:// URL',
    counts: 'from the next start',
    secret: true,
    read: parseQueueUrl,
  },
  HOOKS_QUEUE_CHANNELS: {
    form: 'a comma-separated list of stream names without spaces, 200 characters each at most',
    counts: 'from the next start',
    read: parseChannels,
  },
  HOOKS_RECOVER: {
    form: SOURCES_FORM,
    counts: 'at once',
    read: readSources,
  },
  HOOKS_RECOVER_INTERVAL_S: {
    ...integer({ min: 1, max: 86_400, of: 'seconds' }),
    counts: 'at once',
    default: '900',
  },
  HOOKS_RECOVER_GITHUB_TOKEN: secret('a token that may read and redeliver webhooks'),
  HOOKS_RECOVER_GITHUB_API: { ...API_URL, counts: 'at once', default: API_URLS.github },
  HOOKS_RECOVER_STRIPE_KEY: secret('a restricted key that may read events and webhook endpoints'),
} satisfies Variables

/** A key: 32 bytes as base64. */
export function parseSecretKey(text: string): Buffer {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(text)) throw new SyntaxError('it is no such text')
  return Buffer.from(text, 'base64')
}

function parseSize(text: string): number {
  const match = /^(\d{1,9})(B|KiB|MiB)?$/.exec(text)
  const unit = { B: 1, KiB: 1024, MiB: 1024 * 1024 }[match?.[2] ?? 'B'] ?? 1
  const size = Number(match?.[1]) * unit
  if (!(size >= 1 && size <= MAX_SIZE)) throw new RangeError('it is no such size')
  return size
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
