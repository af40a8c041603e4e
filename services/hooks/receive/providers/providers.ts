import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import {
  ActiveProvider,
  DeliveryMethod,
  providerQueries as q,
  type Provider,
  TrustMode,
  type SchemeChanges,
} from '../../../../db/hooks/receive/providers.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { Fault, notFound } from '../../../../kernel/fault.ts'
import { hoursBefore } from '../../../../kernel/time.ts'
import { hashToken, type RandomBytes } from '../../../../kernel/tokens.ts'
import { makeChange, type ChangeNote, type ChangeTools } from '../../../audit.ts'
import { rejectedSince, type AlarmForm } from '../alarms.ts'
import { checkMethods, type AnswerChanges } from '../deliveries/answers.ts'
import { secretForm } from '../schemes/describe.ts'
import { isSecretText, keyOf, makeSigningSecret, makeToken } from '../schemes/keys.ts'
import { schemeNamed, schemeOf } from '../schemes/schemes.ts'
import { isGenericName, isSignedProvider, type SignedProvider } from '../schemes/provider-names.ts'
import type { SigningSecrets } from '../schemes/signing-secrets.ts'
import { mayDeliver, secretStatus, SecretStatus } from '../schemes/secrets.ts'
import { secretVariable } from '../schemes/configured-secrets.ts'

/** What counts as recent: on the pages, in the stream's status and in the API alike. */
export const RECENT_HOURS = 24

/** hooks.md section 2, ProviderStatus. The secret itself is never part of it. */
export const ProviderStatus = Type.Object({
  name: Type.String(),
  family: ActiveProvider.properties.family,
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  secret_status: SecretStatus,
  path: nullable(Type.String()),
  channel: nullable(Type.String()),
  /** Of a generic receiver for which an operator has chosen them. */
  methods: Type.Optional(Type.Array(DeliveryMethod)),
  answer_status: Type.Optional(Type.Integer()),
})
export type ProviderStatus = Type.Static<typeof ProviderStatus>

/**
 * How a generic provider proves that a delivery is its own: by the scheme of this name, or by a
 * `token` that is made here, or not at all (`open`).
 */
export type Proof = string

interface NewProvider {
  /** Without `generic:`. */
  name: string
  proof: Proof
  /** What an operator says in place of the scheme's own row. */
  row: SchemeChanges | null
  /** What an operator chose beside POST and the usual answer. */
  answers: AnswerChanges
  secret: string | undefined
  acknowledgeOpen: boolean
  enabled: boolean
}

/** A provider that was created or got a new secret. */
export interface MadeProvider {
  name: string
  trust_mode: TrustMode
  scheme: string | null
  scheme_row: SchemeChanges | null
  /** Null for POST alone. */
  methods: readonly DeliveryMethod[] | null
  /** The token or signing secret that was made, shown this one time; null when none was. */
  token: string | null
}

/** What changes of providers need. */
export interface ProviderTools extends ChangeTools {
  secrets: SigningSecrets
  random: RandomBytes
  now: () => Date
}

export const MAX_OVERLAP_S = 30 * 86_400

/** Every provider with its counts as of now. */
export function readProviders(db: Executor, now: Date): Promise<readonly ActiveProvider[]> {
  const since = {
    recent_since: hoursBefore(now, RECENT_HOURS),
    rejected_since: rejectedSince(now),
  }
  return q.listProvidersWithActivity(db, since)
}

/** A provider as the API and the pages show it. */
export function providerStatus(provider: ActiveProvider, secrets: SigningSecrets): ProviderStatus {
  const { name, family, trust_mode, methods, answer } = provider
  return {
    name,
    family,
    trust_mode,
    enabled: mayDeliver(provider, secrets),
    secret_status: secretStatus(provider, secrets),
    path: family === 'webhook' ? receiverPath(name) : null,
    channel: family === 'queue' ? name.slice('queue:'.length) : null,
    ...(methods !== null && { methods }),
    ...(answer !== null && { answer_status: answer.status }),
  }
}

/** Where a sender posts to. */
export function receiverPath(provider: string): string {
  return `/webhooks/${provider.replace(':', '/')}`
}

/** How far a proof is trusted, and the scheme that it is stored as. */
function storedAs(proof: Proof): Pick<MadeProvider, 'trust_mode' | 'scheme'> {
  if (proof === 'token' || proof === 'open') return { trust_mode: proof, scheme: null }
  return { trust_mode: schemeNamed(proof) === undefined ? 'token' : 'signed', scheme: proof }
}

/**
 * Creates a generic provider with a fresh token or with a secret: `secret`, or one that is made
 * here. An open provider takes anything from anybody, which must be acknowledged.
 */
export async function createProvider(
  tools: ProviderTools,
  { name: genericName, proof, row, answers, secret, acknowledgeOpen, enabled }: NewProvider,
): Promise<MadeProvider> {
  checkName(genericName)
  if (proof === 'open' && !acknowledgeOpen) {
    throw unprocessable(
      'An open provider takes anything from anybody; acknowledge that to create it.',
      'acknowledge_open',
    )
  }
  const { methods = null, answer = null } = answers
  const made = { name: `generic:${genericName}`, ...storedAs(proof), scheme_row: row, methods }
  checkMethods(methods, made.trust_mode, schemeOf(made))
  const { token, ...secrets } = makeSecret(tools, made, secret)
  const stored = { ...made, answer, enabled, ...secrets }
  await makeChange(tools, noteOf('add', made.name), async (tx) => {
    if ((await q.addProvider(tx, stored)) === undefined) throw taken(made)
  })
  return { ...made, token }
}

/**
 * Lets an open provider check what it receives, by a scheme or by a token. It keeps its name, and
 * so its URL. A form that is sent twice is refused: it would replace a secret that was shown.
 */
export async function verifyProvider(
  tools: ProviderTools,
  name: string,
  { proof, row, secret }: Pick<NewProvider, 'proof' | 'row' | 'secret'>,
): Promise<MadeProvider> {
  const { methods } = await findOpen(tools.db, name)
  const made = { name, ...storedAs(proof), scheme_row: row, methods }
  checkMethods(methods, made.trust_mode, schemeOf(made))
  const { token, ...secrets } = makeSecret(tools, made, secret)
  await makeChange(tools, noteOf('verify', name), async (tx) => {
    if ((await q.verifyProvider(tx, { ...made, ...secrets })) === undefined) throw notOpen(name)
  })
  return { ...made, token }
}

/** The open provider of this name; throws 404 where there is none. */
export async function findOpen(db: Executor, name: string): Promise<Provider> {
  const rows = await q.listProviders(db, {})
  const found = rows.find((row) => row.name === name && row.trust_mode === 'open')
  if (found === undefined) throw notOpen(name)
  return found
}

function notOpen(name: string): Fault {
  return notFound(`There is no open provider "${name}"; see the list of providers.`)
}

/** The line of a change in the audit. */
function noteOf(verb: string, name: string): ChangeNote {
  return { service: 'hooks', action: `provider ${verb}`, subject: name }
}

function taken({ name, trust_mode }: Pick<MadeProvider, 'name' | 'trust_mode'>): Fault {
  const what = trust_mode === 'signed' ? 'secret' : 'token'
  const problem = `There is a provider "${name}" already`
  const message = `${problem}; choose another name or rotate its ${what}.`
  return new Fault(409, 'CONFLICT', message, { field: 'name' })
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

/** How a secret is replaced. */
interface Rotation {
  /** How long the present secret is accepted beside the new one. */
  overlapSeconds: number
  /** The new secret; one is made where it is not given. */
  secret: string | undefined
  /** The provider's `rotated_at` as it was seen, empty for never; undefined asks no question. */
  seen: string | undefined
}

/**
 * Replaces a provider's token or signing secret by a given or a fresh one. The previous one is
 * accepted until the overlap has passed; an older one stops working at once. Throws 409 after a
 * rotation that the caller has not seen: a form sent twice would replace a secret that nobody has
 * read. Throws 409 as well where the configuration has the secret: a stored one has no effect.
 */
export async function rotateSecret(
  tools: ProviderTools,
  name: string,
  { overlapSeconds, secret, seen }: Rotation,
): Promise<MadeProvider> {
  const now = tools.now()
  const until = overlapSeconds === 0 ? null : new Date(now.getTime() + overlapSeconds * 1_000)
  const row = (await q.listProviders(tools.db, {})).find((candidate) => candidate.name === name)
  if (row === undefined || !hasSecret(row)) throw noSecret(name)
  if (isSignedProvider(name) && tools.secrets.of(name) !== undefined) throw configured(name)
  const { trust_mode, scheme, scheme_row, methods } = row
  const { token, ...stored } = makeSecret(tools, row, secret)
  const given = { name, trust_mode, ...stored, now, until, seen: seen ?? null }
  await makeChange(tools, noteOf('rotate', name), async (tx) => {
    if ((await q.rotateSecret(tx, given)) !== undefined) return
    throw seen === undefined ? noSecret(name) : rotatedSince(name)
  })
  return { name, trust_mode, scheme, scheme_row, methods, token }
}

function hasSecret({ trust_mode, scheme }: Pick<MadeProvider, 'trust_mode' | 'scheme'>): boolean {
  if (schemeNamed(scheme)?.secret === 'none') return false
  return trust_mode === 'token' || trust_mode === 'signed'
}

/**
 * A provider's secret: the text that was made here, if any, and what is stored of it. Of a token
 * only the hash is stored; a signing secret is stored encrypted.
 */
function makeSecret(
  { secrets, random }: ProviderTools,
  { name, trust_mode, scheme }: Pick<MadeProvider, 'name' | 'trust_mode' | 'scheme'>,
  given: string | undefined,
) {
  const isKeyed = schemeNamed(scheme)?.secret === 'none'
  if (isKeyed && given !== undefined) {
    throw unprocessable(`${scheme} has no secret: its key is fetched from the sender.`, 'secret')
  }
  if (trust_mode === 'open' || isKeyed)
    return { token: null, token_hash: null, signing_secret: null }
  if (trust_mode === 'token') {
    checkToken(scheme, given)
    const token = given ?? makeToken(random)
    const shown = given === undefined ? token : null
    return { token: shown, token_hash: hashToken(token), signing_secret: null }
  }
  const box = secrets.box()
  if (box === undefined) throw unprocessable(NO_KEY, 'scheme')
  if (given === undefined && schemeNamed(scheme)?.isGiven) {
    const message = `The sender makes the secret of ${scheme}: give it as the secret.`
    throw unprocessable(message, 'secret')
  }
  const text = given ?? makeSigningSecret(random, scheme ?? '')
  if (keyOf(scheme, text) === undefined) {
    throw unprocessable(`The secret must be ${secretForm(scheme)}.`, 'secret')
  }
  const token = given === undefined ? text : null
  return { token, token_hash: null, signing_secret: box.seal(text, name) }
}

/** The token of a known sender may be one that it has already. */
function checkToken(scheme: string | null, given: string | undefined): void {
  if (given === undefined) return
  if (scheme === null) {
    throw unprocessable(
      'This provider has a token, which is made here; only the secret of a scheme can be given.',
      'secret',
    )
  }
  if (!isSecretText(given)) {
    throw unprocessable(`The secret must be ${secretForm(scheme)}.`, 'secret')
  }
}

/** Sets whether a provider may deliver. */
export async function enableProvider(
  tools: ProviderTools,
  name: string,
  enabled: boolean,
): Promise<void> {
  const row = { name, enabled, now: tools.now() }
  await makeChange(tools, noteOf(enabled ? 'enable' : 'disable', name), async (tx) => {
    if ((await q.enableProvider(tx, row)) === undefined) throw unknown(name)
  })
}

/** Sets alarms of a provider: null turns one off, an absent one stays. */
export async function setAlarms(
  tools: ProviderTools,
  name: string,
  alarms: AlarmForm,
): Promise<void> {
  const row = { name, alarms, now: tools.now() }
  await makeChange(tools, noteOf('alarm', name), async (tx) => {
    if ((await q.setAlarms(tx, row)) === undefined) throw unknown(name)
  })
}

/** Sets the methods and the answer of a generic receiver; what is absent stays. */
export async function setAnswers(
  tools: ProviderTools,
  name: string,
  changes: AnswerChanges,
): Promise<void> {
  const row = (await q.listProviders(tools.db, {})).find((candidate) => candidate.name === name)
  if (row === undefined || !name.startsWith('generic:')) throw unknown(name)
  checkMethods(changes.methods ?? null, row.trust_mode, schemeOf(row))
  await makeChange(tools, noteOf('set', name), async (tx) => {
    if ((await q.setAnswers(tx, { name, changes })) === undefined) throw unknown(name)
  })
}

/** Sets the topics whose events a provider accepts, where its scheme has topics. */
export async function setTopics(
  tools: ChangeTools,
  name: string,
  topics: readonly string[],
): Promise<void> {
  const row = (await q.listProviders(tools.db, {})).find((candidate) => candidate.name === name)
  if (schemeNamed(row?.scheme ?? null)?.asks?.topics === undefined) throw unknown(name)
  await makeChange(tools, noteOf('set', name), async (tx) => {
    if ((await q.setTopics(tx, { name, topics })) === undefined) throw unknown(name)
  })
}

/** Removes a generic or queue provider; its events stay. */
export async function removeProvider(tools: ChangeTools, name: string): Promise<void> {
  await makeChange(tools, noteOf('remove', name), async (tx) => {
    if ((await q.removeProvider(tx, { name })) === undefined) throw unknown(name)
  })
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

function configured(name: SignedProvider): Fault {
  const message =
    `The secret of "${name}" comes from ${secretVariable(name)}, which wins over a stored one; ` +
    'change it there, or remove it there first.'
  return new Fault(409, 'CONFLICT', message)
}

function rotatedSince(name: string): Fault {
  const message =
    `The secret of "${name}" was rotated since this page was loaded. Nothing was changed; ` +
    'load the page again to rotate it once more.'
  return new Fault(409, 'CONFLICT', message)
}

const NO_KEY =
  'Signing secrets are stored encrypted: set GATEHOUSE_SECRET_KEY, ' +
  'as openssl rand -base64 32 prints one, and start again.'
