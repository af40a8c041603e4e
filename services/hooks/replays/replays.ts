import Type from 'typebox'
import type { Database } from '../../../db/client.ts'
import { eventQueries } from '../../../db/hooks/events.ts'
import { Replay, replayQueries } from '../../../db/hooks/replays.ts'
import { notFound } from '../../../kernel/fault.ts'
import type { HostSet } from '../../../kernel/net/addresses.ts'
import { makeChange, type ChangeTools } from '../../audit.ts'
import { redactUrlTokens } from '../redact.ts'
import type { Registry } from '../registry.ts'
import { makeAttempt, replayIdentity, type AttemptParts } from './attempt.ts'
import { chooseTarget } from './outgoing.ts'

/** What a replay works with. */
export interface ReplayParts extends AttemptParts {
  registry: AttemptParts['registry'] & Pick<Registry, 'settings'>
  db: Database
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: () => HostSet | undefined
}

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
  const {
    retryAfter: _,
    answer,
    ...result
  } = await makeAttempt(parts, event, target, {
    ...replayIdentity(parts, event),
    keeps: 'all answers',
  })
  const replay = { kind: 'replay' as const, target: redactUrlTokens(target.url.href), ...result }
  return { replay, row: { event: id, ...replay, answer }, url: target.url }
}
