import * as Type from '../../../../kernel/schema.ts'
import type { Database } from '../../../../db/client.ts'
import {
  destinationQueries as q,
  type DestinationTarget,
} from '../../../../db/hooks/send/destinations.ts'
import type { StoredEvent } from '../../../../db/hooks/log/events.ts'
import { Replay } from '../../../../db/hooks/send/replays.ts'
import type { Actor } from '../../../../kernel/actor.ts'
import { makeChange } from '../../../audit.ts'
import { redactUrlTokens } from '../../redact.ts'
import { makeAttempt } from '../replays/attempt.ts'
import { auditedUrl } from '../replays/replays.ts'
import { chooseTarget } from '../replays/outgoing.ts'
import type { DestinationParts } from './attempt.ts'
import { NO_CREDENTIALS, sealCredentials } from './credentials.ts'
import { checkTarget, unknown } from './destinations.ts'
import { configOf, type DestinationUpdate } from './form.ts'
import { requestOf } from './outgoing.ts'
import { checkTemplate } from './template.ts'

// A made-up event that is sent to a destination once, as its own events are: with its signature,
// its credentials, its template, its timeout and the guard of addresses. It is no delivery: nothing
// is counted and nothing is tried again.

/** What a test is sent with. */
export interface TestParts extends DestinationParts {
  db: Database
  actor: Actor
}

/** What a receiver answered to a test. */
export const TestResult = Type.Pick(Replay, ['outcome', 'status', 'ms', 'detail', 'answer'])
export type TestResult = Type.Static<typeof TestResult>

/** Where a test goes, and the provider whose event it seems to be. */
interface TestTarget {
  target: DestinationTarget
  provider: string | undefined
}

/** Sends a test to a destination as it is configured; throws 404. */
export async function testDestination(parts: TestParts, name: string): Promise<TestResult> {
  const target = await storedTarget(parts.db, name)
  if (target === undefined) throw unknown(name)
  const [shown] = await q.listDestinations(parts.db, { name, count_up_to: 0 })
  return sendTest(parts, { target, provider: shown?.providers[0] })
}

/**
 * Sends a test to what a form describes, before it is saved. What is not shown again stays: the
 * credentials, and the tokens in the URL.
 */
export async function testDraft(
  parts: TestParts,
  name: string,
  given: DestinationUpdate,
): Promise<TestResult> {
  const config = configOf(given)
  checkTemplate(config.body_template, config.url)
  const stored = await storedTarget(parts.db, name)
  const isShown = stored !== undefined && config.url === redactUrlTokens(stored.url)
  const url = isShown ? stored.url : config.url
  if (!isShown) await checkTarget({ replayTargets: parts.replayTargets() }, url)
  const { secrets } = parts
  const credentials = sealCredentials({ secrets, name }, stored ?? NO_CREDENTIALS, given)
  const state = { kind: 'standing', enabled: true, failed: false } as const
  const target = { ...config, ...credentials, ...state, name, url }
  return sendTest(parts, { target, provider: config.providers[0] })
}

/** A destination with its whole URL and its sealed credentials. */
async function storedTarget(db: Database, name: string): Promise<DestinationTarget | undefined> {
  const targets = await q.listTargets(db, {})
  return targets.find((one) => one.kind === 'standing' && one.name === name)
}

/** Tells a receiver that nothing happened that it should act on. */
const MARK = { 'x-gatehouse-test': 'true' }

async function sendTest(parts: TestParts, { target, provider }: TestTarget): Promise<TestResult> {
  const at = parts.clock.now()
  // Another key each time: a receiver must not take the next event for a repeat of the test.
  const key = `test-${parts.random(12).toString('hex')}`
  const request = requestOf(parts, target, madeUpEvent(parts, provider, at), { key, at })
  const marked =
    'problem' in request ? request : { ...request, headers: { ...request.headers, ...MARK } }
  const { outcome, status, ms, detail, answer } = await makeAttempt(parts, marked, {
    at,
    timeoutMs: target.timeout_s * 1_000,
    trusted: chooseTarget(target.url, null, parts.replayTargets()).trusted,
    keeps: 'all answers',
  })
  const subject = `${target.name} at ${auditedUrl(new URL(target.url))}`
  const note = { service: 'hooks', action: 'destination test', subject } as const
  await makeChange(parts, note, async () => undefined)
  return { outcome, status, ms, detail, answer }
}

/** It is signed as the events of its provider are. */
function madeUpEvent(
  { registry }: Pick<TestParts, 'registry'>,
  provider: string | undefined,
  received_at: Date,
): StoredEvent {
  const payload = Buffer.from(JSON.stringify({ test: true, message: 'A test by Gatehouse' }))
  return {
    id: 0,
    provider: provider ?? 'gatehouse',
    event_type: 'gatehouse.test',
    trust_mode: registry.provider(provider ?? '')?.trust_mode ?? 'open',
    verified: false,
    verify_detail: null,
    external_id: null,
    source_ip: null,
    content_type: 'application/json',
    method: 'POST',
    query: null,
    headers: '[]',
    payload,
    payload_size: payload.length,
    reading: null,
    read_as: null,
    attempts: 1,
    received_at,
  }
}
