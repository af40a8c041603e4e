import type { Provider, SecretName } from '../../../../db/hooks/receive/providers.ts'
import {
  badRequest,
  forbidden,
  notFound,
  wrongMethod,
  type Fault,
} from '../../../../kernel/fault.ts'
import { isObject, objectOf } from '../../../../kernel/json.ts'
import { allowOf, takesMethod, toAnswer } from './answers.ts'
import { contentOf, storedReading, type ReadBody } from './body.ts'
import { cleanText, fieldsAt, idOfBytes, type Content } from './fields.ts'
import {
  BODY_UNREADABLE,
  disabled,
  HEADER_MISSING,
  LOOP,
  overloaded,
  refusalOf,
  SIGNATURE_WRONG,
  TOKEN_WRONG,
  UNKNOWN_GENERIC,
  UNKNOWN_SIGNED,
} from './refusals.ts'
import type { DeliveryHead, Received, Receiver, Receiving } from './receiving.ts'
import { rejected, rejectedPath } from './rejected.ts'
import { isLoop } from '../installation.ts'
import { redactUrlTokens, storedHeaders, storedQuery } from '../../redact.ts'
import { answerUnsigned, answerVerified, type PlainAnswer } from '../schemes/handshakes.ts'
import { verifyFetched } from '../schemes/fetched.ts'
import { withLikeness } from '../schemes/recognise.ts'
import { needsJson, placesOf, presetNamed, schemeOf } from '../schemes/schemes.ts'
import type { Scheme } from '../schemes/scheme.ts'
import { isSignedProvider } from '../schemes/provider-names.ts'
import {
  acceptsPrevious,
  keysAt,
  mayDeliver,
  placesOfTokens,
  presentedToken,
  tokenMatches,
} from '../schemes/secrets.ts'
import {
  bodyStaleness,
  verifySignature,
  type Keys,
  type Unverified,
} from '../schemes/signatures.ts'

/**
 * Starts a delivery to a signed receiver (hooks.md section 4): it is verified, then read, then
 * stored. Throws 404 for an unknown provider and 403 for a disabled one.
 */
export function startSigned(receiver: Receiver, head: DeliveryHead): Receiving {
  const { provider } = head
  if (!isSignedProvider(provider)) {
    throw rejectedPath(receiver, head, notFound(UNKNOWN_SIGNED))
  }
  const row = receiver.registry.provider(provider)
  const scheme = row && schemeOf(row)
  const keys = row && keysAt(receiver.secrets, row, head.receivedAt)
  if (row === undefined || scheme === undefined || !keys?.accepted.length) {
    throw rejectedPath(receiver, head, notFound(UNKNOWN_SIGNED), 'no secret is configured')
  }
  if (!row.enabled) throw rejected(receiver, head, disabled(provider), 'disabled')
  refuseLoop(receiver, head)
  return startVerified(receiver, head, row, scheme, {
    keys,
    refusal: ({ status }) =>
      status === 400 ? badRequest(HEADER_MISSING) : refusalOf(401, SIGNATURE_WRONG),
    readContent(read) {
      const content = contentOf(read)
      if (isObject(content)) return content
      // What decodes to too much is kept as it was sent.
      if (read.how === 'oversized') return {}
      throw badRequest(BODY_UNREADABLE)
    },
  })
}

/**
 * Starts a delivery to a generic receiver: its caller or its signature is checked, its bytes are
 * stored whatever they are. Throws 404 for an unknown provider and 403 for a disabled one.
 */
export function startGeneric(
  receiver: Receiver,
  head: DeliveryHead,
  pathToken: string | undefined,
): Receiving {
  const { provider } = head
  const row = receiver.registry.provider(provider)
  if (row === undefined) throw rejectedPath(receiver, head, notFound(UNKNOWN_GENERIC))
  if (!mayDeliver(row, receiver.secrets)) {
    throw rejected(receiver, head, disabled(provider), 'disabled')
  }
  refuseLoop(receiver, head)
  if (head.method === 'OPTIONS' && row.methods !== null) {
    return answering({ status: 204, headers: { allow: allowOf(row) } })
  }
  const scheme = schemeOf(row)
  if (scheme !== undefined) {
    const answer = answerUnsigned(scheme.handshake, head)
    if (answer !== undefined) return answering(answer)
    refuseMethod(head, row)
    return startVerified(receiver, head, row, scheme, {
      keys: keysAt(receiver.secrets, row, head.receivedAt),
      refusal: () => refusalOf(scheme.refusal, SIGNATURE_WRONG),
      readContent: (read) => (needsJson(scheme) ? contentOf(read) : undefined) ?? {},
      status: scheme.answer,
    })
  }
  refuseMethod(head, row)
  const known = presetNamed(row.scheme)?.scheme
  return {
    update: () => undefined,
    async finish(body) {
      const proof = proveCaller(head, row, pathToken)
      if ('reason' in proof) {
        const reason = withLikeness(proof.reason, head.headers, row.scheme)
        throw rejected(receiver, head, refusalOf(known?.refusal, TOKEN_WRONG), reason, true)
      }
      receiver.secretUses.record(row, proof.secret, head.receivedAt)
      const { headers } = head
      const read = await readDelivery(receiver, head, body)
      const content = (needsJson(placesOf(row)) ? contentOf(read) : undefined) ?? {}
      const name = known?.handshake
      const members = objectOf(content)
      const answer = answerUnsigned(name, head) ?? answerVerified(name, { headers, members })
      if (answer !== undefined) return { kind: 'answered', answer }
      return store(receiver, head, row, { body, read, content, status: known?.answer })
    },
  }
}

function answering(answer: PlainAnswer): Receiving {
  return { update: () => undefined, finish: async () => ({ kind: 'answered', answer }) }
}

/** 405 for a method that this provider does not take. */
function refuseMethod({ method }: DeliveryHead, row: Provider): void {
  if (!takesMethod(row, method)) throw wrongMethod(allowOf(row))
}

/** A destination that leads back here would otherwise store and send the same event without end. */
function refuseLoop(receiver: Receiver, head: DeliveryHead): void {
  if (!isLoop(receiver.registry.installation, head.headers)) return
  throw rejected(receiver, head, forbidden(LOOP), 'a loop: it was sent from here twice')
}

/** What the receivers of signed deliveries do each in its way. */
interface SignedReceiver {
  keys: Keys
  refusal: (failure: Unverified) => Fault
  /** What the body holds; throws where this receiver refuses a body without members. */
  readContent: (read: ReadBody) => Content
  /** Of the answer to a stored event, 202 when absent. */
  status?: Scheme['answer']
}

/** Starts a signed delivery: it is verified, then read, then stored. */
function startVerified(
  receiver: Receiver,
  head: DeliveryHead,
  row: Provider,
  scheme: Scheme,
  { keys, refusal, ...how }: SignedReceiver,
): Receiving {
  const { headers, receivedAt } = head
  const freshness = receiver.freshnessSeconds()
  // A query can't hold the beginning of a JSON body: both would be signed as the same text.
  const search = head.search.replace(/[[\]{}"]/g, encodeURIComponent)
  const query = search === '' ? '' : `?${search}`
  const url = receiver.baseUrl() + head.path + query
  const { provider } = head
  const { fetchedKeys, subscriptions } = receiver
  const verifier =
    scheme.fetched === undefined
      ? verifySignature(scheme, { ...head, url }, keys, freshness)
      : verifyFetched(scheme, { ...head, url }, { provider, fetchedKeys, keys, freshness })
  return {
    update: verifier.update,
    async finish(body) {
      const proof = await verifier.finish(body)
      if ('reason' in proof) {
        const reason = withLikeness(proof.reason, headers, row.scheme)
        throw rejected(receiver, head, refusal(proof), reason, true)
      }
      receiver.secretUses.record(row, proof.secret, receivedAt)
      const read = await readDelivery(receiver, head, body)
      const content = how.readContent(read)
      const members = objectOf(content)
      const stale = bodyStaleness(scheme, members, receivedAt, freshness)
      if (stale !== undefined) {
        const failure = { status: 401, reason: stale } as const
        throw rejected(receiver, head, refusal(failure), stale, true)
      }
      const key = keys.accepted[proof.secret === 'current' ? 0 : 1]
      const answer = answerVerified(scheme.handshake, { headers, members, key })
      if (answer !== undefined) return { kind: 'answered', answer }
      const algorithm = 'algorithm' in proof ? proof.algorithm : scheme.algorithm
      const used = { ...scheme, algorithm }
      const understood = { body, read, content, status: how.status, scheme: used }
      const received = await store(receiver, head, row, understood)
      subscriptions.received(provider, scheme, members)
      return received
    },
  }
}

/** Reads a body once its sender is proven. */
function readDelivery({ readBody }: Receiver, { headers }: DeliveryHead, body: Buffer) {
  const { 'content-type': contentType, 'content-encoding': contentEncoding } = headers
  return readBody(body, { contentType, contentEncoding })
}

/** By which secret a delivery was accepted, or why it is rejected. */
type Proof = { secret: SecretName | null } | { reason: string }

function proveCaller(
  { headers, search, receivedAt }: DeliveryHead,
  row: Provider,
  path: string | undefined,
): Proof {
  if (row.trust_mode === 'open') return { secret: null }
  const sender = presetNamed(row.scheme)?.scheme
  const own = sender !== undefined && 'token' in sender ? sender.token : []
  const presented = presentedToken(headers, search, path, own)
  if (presented === undefined) return { reason: `token missing in ${placesOfTokens(own)}` }
  const { token, place } = presented
  if (token === '') return { reason: `token missing: it is empty in ${place}` }
  // Both are compared whatever the first comparison says.
  const current = tokenMatches(token, row.token_hash)
  const previous = tokenMatches(token, row.previous_hash)
  if (current) return { secret: 'current' }
  if (previous && acceptsPrevious(row, receivedAt)) return { secret: 'previous' }
  if (previous) return { reason: `matches a retired token, in ${place}` }
  const isPadded = tokenMatches(token.trim(), row.token_hash)
  const why = isPadded ? 'would match without white space around the token' : 'wrong token'
  return { reason: `${why}, in ${place}` }
}

/** A delivery whose sender is proven. */
interface Understood {
  body: Buffer
  read: ReadBody
  content: Content
  /** Of the answer, 202 when absent. */
  status: 200 | 202 | 204 | undefined
  /** The scheme by which it was verified; undefined for a token or none. */
  scheme?: Scheme
}

/**
 * Stores a delivery, but not a HEAD. A signed delivery without an id is known by its bytes, unless
 * its sender repeats them for another event.
 */
async function store(
  { ingest }: Receiver,
  head: DeliveryHead,
  row: Provider,
  { body, read, content, status = 202, scheme }: Understood,
): Promise<Received> {
  const { provider, method, path, search, headers, rawHeaders, client } = head
  const chosen = row.answer && toAnswer(row.answer)
  if (method === 'HEAD') return { kind: 'answered', answer: chosen ?? { status } }
  const { event_type, external_id } = fieldsAt(placesOf(row), headers, content)
  const isKnownByBytes = scheme !== undefined && scheme.repeatsBytes === undefined
  const saved = await ingest.save({
    provider,
    event_type,
    external_id: external_id ?? (isKnownByBytes ? idOfBytes(method, search, body) : null),
    trust: trustOf(row, scheme),
    method,
    path: redactUrlTokens(path),
    query: storedQuery(search),
    content_type: cleanText(headers['content-type']),
    source_ip: client,
    headers: storedHeaders(rawHeaders, scheme?.signature),
    body,
    ...storedReading(read),
  })
  if (saved === undefined) throw overloaded()
  if (chosen !== null) return { kind: 'answered', answer: chosen }
  return { kind: 'acknowledged', saved, status }
}

/** A signature that does not cover the whole event proves its caller alone, as a token does. */
function trustOf({ trust_mode }: Provider, scheme: Scheme | undefined) {
  if (scheme === undefined) return trust_mode === 'token' ? 'token' : 'open'
  return scheme.covers === undefined ? scheme.algorithm : 'token'
}
