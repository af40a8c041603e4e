import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Provider } from '../../../../db/hooks/receive/providers.ts'
import * as Type from '../../../../kernel/schema.ts'
import { hashToken } from '../../../../kernel/tokens.ts'
import { schemeNamed } from './schemes.ts'
import type { Keys } from './signatures.ts'
import type { Key } from './scheme.ts'
import { isSignedProvider } from './provider-names.ts'
import type { ProviderSecrets, Sealed, SigningSecrets } from './signing-secrets.ts'

/** What the configuration says of a provider's secrets; it wins over a stored secret. */
export function configuredOf(secrets: SigningSecrets, name: string): ProviderSecrets | undefined {
  return isSignedProvider(name) ? secrets.of(name) : undefined
}

/** The key of a provider that signs: the configured one, else the stored one. */
export function currentKey(secrets: SigningSecrets, provider: Sealed): Key | undefined {
  const configured = configuredOf(secrets, provider.name)
  if (configured !== undefined) return configured.accepted[0]
  const stored = secrets.keyIn(provider)
  return 'key' in stored ? stored.key : undefined
}

/**
 * The keys that verify a delivery to a provider that signs, at a time. Without a current key there
 * are no keys, so that nothing is verified.
 */
export function keysAt(secrets: SigningSecrets, provider: Provider, at: Date): Keys {
  const configured = configuredOf(secrets, provider.name)
  if (configured !== undefined) return configured
  const current = secrets.keyIn(provider)
  if ('problem' in current) return { accepted: [], retired: [] }
  const accepted = [current.key]
  const previous = secrets.keyIn(provider, 'previous')
  if ('problem' in previous) return { accepted, retired: [] }
  return acceptsPrevious(provider, at)
    ? { accepted: [...accepted, previous.key], retired: [] }
    : { accepted, retired: [previous.key] }
}

/** Whether the token or secret before the last rotation is still accepted at a time. */
export function acceptsPrevious(
  { previous_until: end }: Pick<Provider, 'previous_until'>,
  at: Date,
): boolean {
  return end !== null && at < end
}

/** hooks.md section 2, SecretStatus. */
export const SecretStatus = Type.Enum(['configured', 'missing', 'none-by-design'])
export type SecretStatus = Type.Static<typeof SecretStatus>

type WithSecret = Sealed & Pick<Provider, 'trust_mode' | 'token_hash'>

/** Whether a provider's token or secret exists and can be used. */
export function secretStatus(provider: WithSecret, secrets: SigningSecrets): SecretStatus {
  const { trust_mode } = provider
  if (trust_mode === 'open' || trust_mode === 'queue') return 'none-by-design'
  if (schemeNamed(provider.scheme)?.secret === 'none') return 'none-by-design'
  const exists =
    trust_mode === 'token'
      ? provider.token_hash !== null
      : currentKey(secrets, provider) !== undefined
  return exists ? 'configured' : 'missing'
}

/** A provider without its token or signing secret is disabled whatever the operator wants. */
export function mayDeliver(
  provider: WithSecret & Pick<Provider, 'enabled'>,
  secrets: SigningSecrets,
): boolean {
  return provider.enabled && secretStatus(provider, secrets) !== 'missing'
}

/** The headers in which every token may be, apart from `Authorization`. */
export const TOKEN_HEADERS = ['x-webhook-token', 'x-gitlab-token', 'x-api-key', 'x-auth-token']

/** A token, and where it was found, in words. */
interface PresentedToken {
  token: string
  place: string
}

/**
 * The presented token: `Authorization: Bearer` or `Token`, the headers of every token, a header of
 * the sender's `own`, `?token=`, path, the password of `Authorization: Basic`, `Authorization`
 * without a scheme, in this order.
 */
export function presentedToken(
  headers: IncomingHttpHeaders,
  search: string,
  path: string | undefined,
  own: readonly string[],
): PresentedToken | undefined {
  const { authorization = '' } = headers
  const [scheme, place] = /^(bearer|token)(?: |$)/i.exec(authorization) ?? []
  if (scheme !== undefined) {
    return { token: authorization.slice(scheme.length).trim(), place: `Authorization: ${place}` }
  }
  const name = [...TOKEN_HEADERS, ...own].find((header) => headers[header] !== undefined)
  const header = name === undefined ? undefined : headers[name]
  if (typeof header === 'string') return { token: header, place: `the header ${name}` }
  const query = search.includes('token=') ? new URLSearchParams(search).get('token') : null
  if (query !== null) return { token: query, place: '?token=' }
  if (path !== undefined) return { token: path, place: 'the path' }
  const password = basicPassword(authorization)
  if (password !== undefined) return { token: password, place: 'Authorization: Basic' }
  return authorization === '' || /\s/.test(authorization)
    ? undefined
    : { token: authorization, place: 'Authorization' }
}

/** Where a token of a provider was looked for, in words. */
export function placesOfTokens(own: readonly string[]): string {
  const names = [...new Set([...TOKEN_HEADERS, ...own])]
  return `Authorization, ${names.join(', ')}, ?token= and the path`
}

/** The text after the first colon: a user name can't have a colon. */
function basicPassword(authorization: string): string | undefined {
  const [, encoded] = /^basic +([a-z\d+/]+={0,2})$/i.exec(authorization) ?? []
  if (encoded === undefined) return undefined
  const pair = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  return colon < 0 ? undefined : pair.slice(colon + 1)
}

/** Whether a token has the stored hash, in constant time; an empty one never matches. */
export function tokenMatches(token: string, hash: Buffer | null): boolean {
  const same = timingSafeEqual(hashToken(token), hash ?? Buffer.alloc(32))
  return same && hash !== null && token !== ''
}
