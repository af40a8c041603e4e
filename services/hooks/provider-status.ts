import Type from 'typebox'
import { TrustMode, type Provider } from '../../db/hooks/rows.ts'
import { nullable } from '../../db/rows.ts'
import { openSecret } from './sender-keys.ts'
import { isSignedProvider, type SigningSecrets } from './signing-secrets.ts'

/** hooks.md section 2, ProviderStatus. The secret itself is never part of it. */
export const ProviderStatus = Type.Object({
  name: Type.String(),
  family: Type.Union([Type.Literal('webhook'), Type.Literal('queue')]),
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  secret_status: Type.Union([
    Type.Literal('configured'),
    Type.Literal('missing'),
    Type.Literal('none-by-design'),
  ]),
  path: nullable(Type.String()),
  channel: nullable(Type.String()),
})
export type ProviderStatus = Type.Static<typeof ProviderStatus>

/** What a provider row means at present: a sender without its secret is disabled whatever was wanted. */
export function providerStatus(provider: Provider, secrets: SigningSecrets): ProviderStatus {
  const { name, family, trust_mode } = provider
  const secret_status = secretStatus(provider, secrets)
  return {
    name,
    family,
    trust_mode,
    enabled: provider.enabled && secret_status !== 'missing',
    secret_status,
    path: family === 'webhook' ? receiverPath(name) : null,
    channel: family === 'queue' ? name.slice('queue:'.length) : null,
  }
}

/** Where a sender posts to. */
export function receiverPath(provider: string): string {
  return `/webhooks/${provider.replace(':', '/')}`
}

function secretStatus(
  provider: Provider,
  secrets: SigningSecrets,
): ProviderStatus['secret_status'] {
  if (provider.trust_mode === 'open' || provider.trust_mode === 'queue') return 'none-by-design'
  if (isSignedProvider(provider.name)) {
    return secrets.of(provider.name) === undefined ? 'missing' : 'configured'
  }
  const { name, trust_mode, token_hash, signing_secret } = provider
  if (trust_mode === 'token') return token_hash === null ? 'missing' : 'configured'
  const readable = signing_secret !== null && 'text' in openSecret(secrets, name, signing_secret)
  return readable ? 'configured' : 'missing'
}
