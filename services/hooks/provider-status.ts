import Type from 'typebox'
import { TrustMode, type Provider } from '../../db/hooks/rows.ts'
import { nullable } from '../../db/rows.ts'
import { mayDeliver, secretStatus, SecretStatus } from './sender-keys.ts'
import type { SigningSecrets } from './signing-secrets.ts'

/** hooks.md section 2, ProviderStatus. The secret itself is never part of it. */
export const ProviderStatus = Type.Object({
  name: Type.String(),
  family: Type.Union([Type.Literal('webhook'), Type.Literal('queue')]),
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  secret_status: SecretStatus,
  path: nullable(Type.String()),
  channel: nullable(Type.String()),
})
export type ProviderStatus = Type.Static<typeof ProviderStatus>

/** What a provider row means at present. */
export function providerStatus(provider: Provider, secrets: SigningSecrets): ProviderStatus {
  const { name, family, trust_mode } = provider
  return {
    name,
    family,
    trust_mode,
    enabled: mayDeliver(provider, secrets),
    secret_status: secretStatus(provider, secrets),
    path: family === 'webhook' ? receiverPath(name) : null,
    channel: family === 'queue' ? name.slice('queue:'.length) : null,
  }
}

/** Where a sender posts to. */
export function receiverPath(provider: string): string {
  return `/webhooks/${provider.replace(':', '/')}`
}
