import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import {
  ActiveProvider,
  providerQueries as q,
  TrustMode,
  type SecretUse,
} from '../../db/hooks/providers.ts'
import { nullable } from '../../db/sql-file.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import type { Clock } from '../../kernel/time.ts'
import { hashToken, type RandomBytes } from '../../kernel/tokens.ts'
import { rejectedSince, type AlarmForm } from './alarms.ts'
import {
  isGenericName,
  isSignedProvider,
  makeSigningSecret,
  makeToken,
  mayDeliver,
  secretStatus,
  SecretStatus,
  SIGNING_SECRET_FORM,
  signingKey,
  type SigningSecrets,
} from './secrets.ts'

/** hooks.md section 2, ProviderStatus. The secret itself is never part of it. */
export const ProviderStatus = Type.Object({
  name: Type.String(),
  family: ActiveProvider.properties.family,
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  secret_status: SecretStatus,
  path: nullable(Type.String()),
  channel: nullable(Type.String()),
})
export type ProviderStatus = Type.Static<typeof ProviderStatus>

/** How a generic provider proves that a delivery is its own. */
export type GenericTrust = 'token' | 'signed' | 'open'

/** A provider that was created or got a new secret. */
export interface MadeProvider {
  readonly name: string
  readonly trust_mode: GenericTrust
  /** The token or signing secret that was made, shown this one time; null when none was. */
  readonly token: string | null
}

/** What changes of providers need. */
export interface ProviderTools {
  readonly db: Database
  readonly secrets: SigningSecrets
  readonly random: RandomBytes
  readonly now: () => Date
}

export const MAX_OVERLAP_S = 30 * 86_400
const DAY_MS = 86_400_000

/** Start of the window that counts as recent. */
export function recentSince(now: Date): Date {
  return new Date(now.getTime() - DAY_MS)
}

/** Every provider with its counts as of now. */
export function readProviders(db: Database, now: Date): Promise<readonly ActiveProvider[]> {
  const since = { recent_since: recentSince(now), rejected_since: rejectedSince(now) }
  return q.listProvidersWithActivity(db, since)
}

/** What a provider's row means at present. */
export function providerStatus(provider: ActiveProvider, secrets: SigningSecrets): ProviderStatus {
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

/**
 * Creates a generic provider with a fresh token or with a signing secret: `secret`, or one that is
 * made here. An open provider takes anything from anybody, which must be acknowledged.
 */
export async function createProvider(
  { db, secrets, random }: ProviderTools,
  {
    name: genericName,
    trust_mode,
    secret,
    acknowledgeOpen,
    enabled,
  }: {
    /** Without `generic:`. */
    readonly name: string
    readonly trust_mode: GenericTrust
    readonly secret: string | undefined
    readonly acknowledgeOpen: boolean
    readonly enabled: boolean
  },
): Promise<MadeProvider> {
  checkName(genericName)
  if (trust_mode === 'open' && !acknowledgeOpen) {
    throw unprocessable(
      'An open provider takes anything from anybody; acknowledge that to create it.',
      'acknowledge_open',
    )
  }
  const name = `generic:${genericName}`
  const { made, stored } = makeSecret(secrets, random, name, trust_mode, secret)
  if ((await q.addProvider(db, { name, trust_mode, enabled, ...stored })) === undefined) {
    const what = trust_mode === 'signed' ? 'secret' : 'token'
    const message = `There is a provider "${name}" already; choose another name or rotate its ${what}.`
    throw new Fault(409, 'CONFLICT', message, { field: 'name' })
  }
  return { name, trust_mode, token: made }
}

function checkName(name: string): void {
  if (!isGenericName(name)) {
    const form = '1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit'
    throw unprocessable(`The name must be ${form}.`, 'name')
  }
  if (isSignedProvider(name)) {
    const message = `The name "${name}" belongs to a signed provider; choose another one.`
    throw unprocessable(message, 'name')
  }
}

/**
 * Replaces a generic provider's token or signing secret, which may be given. The previous one is
 * accepted until the overlap has passed; the one before that is not accepted from now on.
 */
export async function rotateSecret(
  { db, secrets, random, now: clock }: ProviderTools,
  name: string,
  overlapSeconds: number,
  secret: string | undefined,
): Promise<MadeProvider> {
  const now = clock()
  const until = overlapSeconds === 0 ? null : new Date(now.getTime() + overlapSeconds * 1_000)
  const row = (await q.listProviders(db, {})).find((candidate) => candidate.name === name)
  const trust_mode = row?.trust_mode
  if ((trust_mode !== 'token' && trust_mode !== 'signed') || isSignedProvider(name)) {
    throw noSecret(name)
  }
  if (trust_mode === 'token' && secret !== undefined) {
    throw unprocessable(
      'This provider has a token, which is made here; only a signing secret can be given.',
      'secret',
    )
  }
  const { made, stored } = makeSecret(secrets, random, name, trust_mode, secret)
  const rotated = await q.rotateSecret(db, { name, trust_mode, ...stored, now, until })
  if (rotated === undefined) throw noSecret(name)
  return { name, trust_mode, token: made }
}

/** A provider's secret: the text that was made here, if any, and what is stored of it. */
interface NewSecret {
  readonly made: string | null
  readonly stored: { readonly token_hash: Buffer | null; readonly signing_secret: Buffer | null }
}

/** Of a token only the hash is stored; a signing secret is stored encrypted. */
function makeSecret(
  secrets: SigningSecrets,
  random: RandomBytes,
  name: string,
  trust_mode: GenericTrust,
  given: string | undefined,
): NewSecret {
  if (trust_mode === 'open')
    return { made: null, stored: { token_hash: null, signing_secret: null } }
  if (trust_mode === 'token') {
    const token = makeToken(random)
    return { made: token, stored: { token_hash: hashToken(token), signing_secret: null } }
  }
  const box = secrets.box()
  if (box === undefined) throw unprocessable(NO_KEY, 'trust_mode')
  const text = given ?? makeSigningSecret(random)
  if (signingKey(text) === undefined) {
    throw unprocessable(`The secret must be ${SIGNING_SECRET_FORM}.`, 'secret')
  }
  const stored = { token_hash: null, signing_secret: box.seal(text, name) }
  return { made: given === undefined ? text : null, stored }
}

/** Sets whether a provider may deliver. */
export async function enableProvider(
  { db, now }: ProviderTools,
  name: string,
  enabled: boolean,
): Promise<void> {
  if ((await q.enableProvider(db, { name, enabled, now: now() })) === undefined) throw unknown(name)
}

/** Sets alarms of a provider: null turns one off, an absent one stays. */
export async function setAlarms(
  { db, now }: ProviderTools,
  name: string,
  { expected_interval: interval, rejection_burst: burst }: AlarmForm,
): Promise<void> {
  const changed = await q.setAlarms(db, {
    name,
    sets_interval: interval !== undefined,
    interval: interval ?? null,
    sets_burst: burst !== undefined,
    burst: burst ?? null,
    now: now(),
  })
  if (changed === undefined) throw unknown(name)
}

/** Removes a generic or queue provider; its events stay. */
export async function removeProvider({ db }: ProviderTools, name: string): Promise<void> {
  if ((await q.removeProvider(db, { name })) === undefined) throw unknown(name)
}

/** 422: hooks.md asks for it where a form has a wrong value. */
function unprocessable(message: string, field: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', message, { field })
}

function unknown(name: string): Fault {
  return notFound(
    `There is no provider "${name}" that this can be done to; see the list of providers.`,
  )
}

function noSecret(name: string): Fault {
  return notFound(
    `There is no provider "${name}" with a token or a stored secret; see the list of providers.`,
  )
}

const NO_KEY =
  'Signing secrets are stored encrypted: set GATEHOUSE_SECRET_KEY, as openssl rand -base64 32 prints one, and start again.'

/**
 * A use; `since` tells when the provider's secrets last changed: the first use after that is
 * written at once.
 */
export interface RecordedUse extends SecretUse {
  readonly since: Date | null
}

/** Records which secret each provider's deliveries are sent with; no delivery waits for it. */
export interface SecretUses {
  record(use: RecordedUse): void
  close(): Promise<void>
}

const FLUSH_MS = 1_000
/**
 * A further use of the same secret is written after this time, so that it is right to the minute.
 */
const SAME_MS = 60_000

export function createSecretUses(db: Database, clock: Clock, log: Log): SecretUses {
  const latest = new Map<string, RecordedUse>()
  const written = new Map<string, RecordedUse>()
  let closing = false

  async function write(): Promise<void> {
    const due = [...latest.values()].filter((use) => {
      const before = written.get(use.provider)
      if (before === undefined || before.secret !== use.secret) return true
      if (before.since?.getTime() !== use.since?.getTime()) return true
      const later = use.at.getTime() - before.at.getTime()
      return closing ? later > 0 : later >= SAME_MS
    })
    if (due.length === 0) return
    await q.saveSecretUses(db, { uses: due })
    for (const use of due) written.set(use.provider, use)
  }

  // What can't be saved stays in `latest`: the next run tries again.
  const flushes = repeat(clock, FLUSH_MS, write, {
    fails: (error) => log.warn('uses of secrets not saved', { error: messageOf(error) }),
    works: () => log.info('uses of secrets are saved again'),
  })

  return {
    record: (use) => void latest.set(use.provider, use),
    async close() {
      closing = true
      await flushes.now()
      await flushes.stop()
    },
  }
}
