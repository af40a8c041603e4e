import type { Preset } from '../scheme.ts'
import { BEARER, DISCORD, HEX, STANDARD_WEBHOOKS } from './shared.ts'

const SPECIFICATION =
  'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md'

// Senders of any kind: by a standard, or as an operator describes them.

export const OWN: readonly Preset[] = [
  {
    name: 'standard',
    title: 'Standard Webhooks',
    docs: SPECIFICATION,
    setup:
      'Add an endpoint with this URL at the sender. Copy its signing secret, which begins with ' +
      'whsec_, or give the sender the one that is made here.',
    tested: 'vector',
    scheme: STANDARD_WEBHOOKS,
  },
  {
    name: 'standard-v1a',
    title: 'Standard Webhooks with a public key (v1a)',
    docs: SPECIFICATION,
    setup:
      'Add an endpoint with this URL at the sender. Copy its public key, which begins with whpk_.',
    tested: 'document',
    scheme: {
      ...STANDARD_WEBHOOKS,
      prefix: 'v1a,',
      algorithm: 'ed25519',
      secret: 'public key',
      isGiven: true,
    },
  },
  {
    name: 'svix',
    title: 'Svix',
    docs: 'https://docs.svix.com/receiving/verifying-payloads/how-manual',
    setup:
      "Add an endpoint with this URL in the sender's application portal. Copy its signing secret, " +
      'which begins with whsec_.',
    tested: 'library',
    scheme: {
      ...STANDARD_WEBHOOKS,
      signature: ['svix-signature', 'webhook-signature'],
      timestamp: ['svix-timestamp', 'webhook-timestamp'],
      id: { headers: ['svix-id', 'webhook-id'], json: [] },
      isGiven: true,
    },
  },
  {
    name: 'ed25519',
    title: 'Ed25519, as Discord signs',
    docs: 'https://www.rfc-editor.org/rfc/rfc8032',
    setup:
      'Set this URL at the sender. Copy its public key; it signs the time and the body, as ' +
      'Discord does.',
    tested: 'document',
    scheme: DISCORD,
  },
  {
    name: 'openid',
    title: 'OpenID token of an issuer that you name',
    docs: 'https://openid.net/specs/openid-connect-discovery-1_0.html',
    setup:
      'Let the sender send an ID token of its issuer as Authorization: Bearer. Name the issuer and ' +
      'the audience, and the subject where the issuer gives tokens to others, too.',
    tested: 'document',
    scheme: {
      ...BEARER,
      type: { headers: ['x-event-type', 'ce-type'], json: ['type'] },
      id: { headers: ['webhook-id', 'x-delivery-id', 'idempotency-key', 'ce-id'], json: [] },
      fetched: { kind: 'openid' },
      asks: { issuer: true, audience: true, subject: false },
    },
  },
  {
    name: 'hmac',
    title: 'HMAC, as you describe it',
    docs: 'https://www.rfc-editor.org/rfc/rfc2104',
    setup:
      "Look the sender's header, its encoding and what it signs up in its documentation. " +
      'Describe them here.',
    tested: 'vector',
    scheme: {
      ...HEX,
      signature: ['x-signature'],
      type: { headers: ['x-event-type'], json: [] },
      id: { headers: ['webhook-id', 'x-delivery-id', 'idempotency-key'], json: [] },
    },
  },
]
