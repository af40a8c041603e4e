import * as Type from '../../../../kernel/schema.ts'
import type { Database } from '../../../../db/client.ts'
import { eventQueries, type StoredEvent } from '../../../../db/hooks/log/events.ts'
import { Replay, replayQueries, type NotedAttempt } from '../../../../db/hooks/send/replays.ts'
import { notFound } from '../../../../kernel/fault.ts'
import type { HostSet } from '../../../../kernel/net/addresses.ts'
import { makeChange, type ChangeTools } from '../../../audit.ts'
import { headersInOrder } from '../../receive/deliveries/stored-headers.ts'
import { redactUrlTokens } from '../../redact.ts'
import type { Registry } from '../../registry.ts'
import { makeAttempt, replayRequest, type AttemptParts } from './attempt.ts'
import { chooseTarget } from './outgoing.ts'

/** What a replay works with. */
export interface ReplayParts extends AttemptParts {
  registry: AttemptParts['registry'] & Pick<Registry, 'settings'>
  db: Database
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: () => HostSet | undefined
}

const TIMEOUT_MS = 10_000

/** The result of a replay. The target's answer is for the page of the event alone. */
export const Sent = Type.Omit(Replay, ['id', 'answer'])
export type Sent = Type.Static<typeof Sent>

/** Another body for an event, and the type of its content; null for none. */
interface Edit {
  payload: string
  content_type: string | null
}

/** Bytes of a payload that can be edited. */
export const MAX_EDITED = 256 * 1024

/**
 * Sends a stored event again; with `edit` with that body, marked as edited, while the stored one
 * stays. The replay has a line in the audit, whatever its outcome.
 */
export async function replayEvent(
  parts: ReplayParts & ChangeTools,
  id: number,
  targetUrl: string | undefined,
  edit?: Edit,
): Promise<Sent> {
  const { attempt, replay, url } = await sendStored(parts, id, targetUrl, edit)
  const subject = `event ${id}${edit === undefined ? '' : ', edited,'} to ${auditedUrl(url)}`
  const note = { service: 'hooks', action: 'event replay', subject } as const
  await makeChange(parts, note, (tx) => replayQueries.noteAttempts(tx, attempt))
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
async function sendStored(
  parts: ReplayParts,
  id: number,
  targetUrl: string | undefined,
  edit: Edit | undefined,
) {
  const stored = await eventQueries.findEvent(parts.db, { id })
  if (stored === undefined) throw notFound(`There is no event ${id}.`)
  const event = edit === undefined ? stored : edited(stored, edit)
  const { settings } = parts.registry
  const target = chooseTarget(targetUrl, settings.replay_default_target, parts.replayTargets())
  const at = parts.clock.now()
  const request = replayRequest(parts, event, target.url, at, edit && { [EDITED]: 'true' })
  const {
    retryAfter: _,
    answer,
    ...made
  } = await makeAttempt(parts, request, {
    at,
    timeoutMs: TIMEOUT_MS,
    trusted: target.trusted,
    keeps: 'all answers',
  })
  const kind = edit === undefined ? ('replay' as const) : ('edited' as const)
  const sent = { kind, target: redactUrlTokens(target.url.href) }
  const noted: NotedAttempt = { event_id: id, ...made, answer }
  const attempt = { ...sent, results: [noted] }
  return { replay: { ...sent, ...made }, attempt, url: target.url }
}

/** The header by which a receiver knows that the body is not what the provider sent. */
const EDITED = 'x-gatehouse-edited'

/** The event with another body. A form sends every line break as CRLF. */
function edited(event: StoredEvent, { payload, content_type }: Edit): StoredEvent {
  const text = event.payload.includes('\r\n') ? payload : payload.replaceAll('\r\n', '\n')
  const headers = headersInOrder(event.headers).filter(([name]) => !/^content-type$/i.test(name))
  return { ...event, content_type, payload: Buffer.from(text), headers: JSON.stringify(headers) }
}
