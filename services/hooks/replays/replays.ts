import Type from 'typebox'
import type { Database } from '../../../db/client.ts'
import { eventQueries, type StoredEvent } from '../../../db/hooks/events.ts'
import { Replay, replayQueries } from '../../../db/hooks/replays.ts'
import { notFound } from '../../../kernel/fault.ts'
import type { HostSet } from '../../../kernel/net/addresses.ts'
import { makeChange, type ChangeTools } from '../../audit.ts'
import { redactUrlTokens } from '../redact.ts'
import type { Registry } from '../registry.ts'
import {
  headersToSend,
  makeAttempt,
  NO_SECRET,
  sendersId,
  type AttemptParts,
  type EventRequest,
  type Problem,
} from './attempt.ts'
import { chooseTarget } from './outgoing.ts'

/** What a replay works with. */
export interface ReplayParts extends AttemptParts {
  registry: AttemptParts['registry'] & Pick<Registry, 'settings'>
  db: Database
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: () => HostSet | undefined
}

const TIMEOUT_MS = 10_000
/** Tells a receiver that this is not the first delivery; the value is the event's id here. */
const MARKER = 'x-gatehouse-replay'
/** The result of a replay. The target's answer is for the page of the event alone. */
export const Sent = Type.Omit(Replay, ['id', 'answer'])
export type Sent = Type.Static<typeof Sent>

/** Sends a stored event again. The replay has a line in the audit, whatever its outcome. */
export async function replayEvent(
  parts: ReplayParts & ChangeTools,
  id: number,
  targetUrl: string | undefined,
): Promise<Sent> {
  const { row, replay, url } = await sendStored(parts, id, targetUrl)
  const subject = `event ${id} to ${auditedUrl(url)}`
  const note = { service: 'hooks', action: 'event replay', subject } as const
  await makeChange(parts, note, (tx) => replayQueries.saveReplay(tx, row))
  return replay
}

/** The same for one event of a job, which has a line of its own. */
export async function replayOfJob(
  parts: ReplayParts,
  id: number,
  targetUrl: string,
): Promise<Sent> {
  const { row, replay } = await sendStored(parts, id, targetUrl)
  await replayQueries.saveReplay(parts.db, row)
  return replay
}

/** A URL without its query, where tokens stand. */
export function auditedUrl({ origin, pathname, search }: URL): string {
  return redactUrlTokens(origin + pathname) + (search === '' ? '' : '?…')
}

/**
 * Sends a stored event to a target, or to the default one. The caller records it, whatever its
 * outcome (decisions.md section 3, Replay).
 */
async function sendStored(parts: ReplayParts, id: number, targetUrl: string | undefined) {
  const event = await eventQueries.findEvent(parts.db, { id })
  if (event === undefined) throw notFound(`There is no event ${id}.`)
  const { settings } = parts.registry
  const target = chooseTarget(targetUrl, settings.replay_default_target, parts.replayTargets())
  const at = parts.clock.now()
  const {
    retryAfter: _,
    answer,
    ...result
  } = await makeAttempt(parts, requestOf(parts, event, target.url, at), {
    at,
    timeoutMs: TIMEOUT_MS,
    trusted: target.trusted,
    keeps: 'all answers',
  })
  const replay = { kind: 'replay' as const, target: redactUrlTokens(target.url.href), ...result }
  return { replay, row: { event: id, ...replay, answer }, url: target.url }
}

/** The bytes as received, signed again for a signed provider. */
function requestOf(
  parts: ReplayParts,
  event: StoredEvent,
  url: URL,
  at: Date,
): EventRequest | Problem {
  // The receiver gets what the sender sent: also the id by which it knows the delivery already.
  const signed = headersToSend(event, parts, at, sendersId(event, parts))
  if (signed === undefined) return { problem: NO_SECRET }
  const headers = { ...signed.all, [MARKER]: String(event.id) }
  return { url, headers, body: event.payload, signature: signed.signature }
}
