import type { Database, Executor } from '../../../../db/client.ts'
import {
  destinationQueries as q,
  type Destination,
} from '../../../../db/hooks/send/destinations.ts'
import { eventQueries } from '../../../../db/hooks/log/events.ts'
import { providerQueries } from '../../../../db/hooks/receive/providers.ts'
import { Fault, notFound } from '../../../../kernel/fault.ts'
import type { Precondition } from '../../../../kernel/http/headers.ts'
import type { HostSet } from '../../../../kernel/net/addresses.ts'
import { isPublicTarget } from '../../../../kernel/net/outbound.ts'
import { makeChange, type ChangeNote, type ChangeTools } from '../../../audit.ts'
import { readSince, type Since } from '../../log/events/filter.ts'
import { REDACTED, redactUrlTokens } from '../../redact.ts'
import type { SigningSecrets } from '../../receive/schemes/signing-secrets.ts'
import { NO_CREDENTIALS, sealCredentials } from './credentials.ts'
import { removeStep } from './removals.ts'
import { checkTemplate } from './template.ts'
import { configOf, unprocessable, type DestinationForm, type DestinationUpdate } from './form.ts'

const MAX_DESTINATIONS = 100
/** Waiting and dead deliveries are counted up to here: beyond, it is enough to know it. */
export const COUNT_UP_TO = 10_000
/** The same on pages, which must not wait for that. */
export const PAGE_COUNT_UP_TO = 1_000

/** A small backlog is removed at once, which frees the name. */
const QUICK_STEPS = 2

/** What is needed to configure a destination. */
export interface DestinationTools extends ChangeTools {
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: HostSet | undefined
  secrets: SigningSecrets
}

/** Adds a destination, which gets the events from now on, or from `since` on. */
export async function addDestination(
  tools: DestinationTools,
  form: DestinationForm,
): Promise<void> {
  const { name } = form
  const config = configOf(form)
  checkTemplate(config.body_template, config.url)
  await checkTarget(tools, config.url)
  const credentials = sealCredentials({ ...tools, name }, NO_CREDENTIALS, form)
  await makeChange(tools, noteOf('add', name), async (tx) => {
    await refuseUnknownProviders(tx, config.providers, [])
    const position = await positionBefore(tx, form.since)
    const row = { ...config, ...credentials, name, position, most: MAX_DESTINATIONS }
    if ((await q.addDestination(tx, row)) === undefined) throw await noRoomFor(tx, name)
  })
}

/**
 * Changes the settings of a destination. Waiting deliveries stay, even if the new filters exclude
 * them; the filters apply to events after the position.
 */
export async function setDestination(
  tools: DestinationTools,
  name: string,
  given: DestinationUpdate,
  precondition: Precondition,
): Promise<void> {
  const config = configOf(given)
  checkTemplate(config.body_template, config.url)
  const before = await findDestination(tools.db, name)
  // What is shown of a URL stands for it: its tokens are not shown.
  if (config.url !== before.url) await checkTarget(tools, config.url)
  await makeChange(tools, noteOf('set', name), async (tx) => {
    const present = await q.lockConfig(tx, { name })
    if (present === undefined) throw unknown(name)
    if (!precondition(present.version)) throw changedMeanwhile(name)
    await refuseUnknownProviders(tx, config.providers, present.providers)
    const url = config.url === redactUrlTokens(present.url) ? present.url : config.url
    const position = await positionBefore(tx, given.since)
    refuseSkipping(position, present.position)
    const credentials = sealCredentials({ ...tools, name }, present, given)
    await q.setDestination(tx, { ...config, ...credentials, name, url, position })
  })
}

/**
 * The address must be on the public internet, unless an operator vouches for it; each connection
 * checks it again.
 */
export async function checkTarget(
  { replayTargets }: Pick<DestinationTools, 'replayTargets'>,
  url: string,
): Promise<void> {
  if (url.includes(REDACTED)) {
    throw unprocessable(`url has ${REDACTED} in place of a token; give the whole URL.`, 'url')
  }
  const target = new URL(url)
  if (replayTargets?.(target) === true || (await isPublicTarget(target)) !== false) return
  const message = `The host of the URL is not on the public internet; list it in ${ALLOW_LIST}.`
  throw unprocessable(message, 'url')
}

/** A provider that was removed may stay: its events are still in the log. */
async function refuseUnknownProviders(
  tx: Executor,
  wanted: readonly string[],
  present: readonly string[],
): Promise<void> {
  const others = wanted.filter((name) => !present.includes(name))
  if (others.length === 0) return
  const known = new Set((await providerQueries.listProviders(tx, {})).map(({ name }) => name))
  const stranger = others.find((name) => !known.has(name))
  if (stranger === undefined) return
  const generic = `generic:${stranger}`
  const hint = known.has(generic) ? `did you mean ${generic}?` : 'see the list of providers.'
  const message = `There is no provider "${stranger}"; ${hint}`
  throw unprocessable(message, 'providers')
}

/** The event before the first one of a destination; null without a wish. */
async function positionBefore(tx: Executor, given = ''): Promise<number | null> {
  const since = readSince(given)
  if (given.trim() === '' || since === undefined) return null
  const first =
    'id' in since ? since.id : (await eventQueries.firstIdSince(tx, { since: since.time })).id
  return Math.max(0, first - 1)
}

/** A later position would lose events that are not planned yet, without a word. */
function refuseSkipping(position: number | null, present: number): void {
  if (position === null || position <= present) return
  const message = `since must not be after event ${present}, the last one that was checked.`
  throw unprocessable(message, 'since')
}

function changedMeanwhile(name: string): Fault {
  const message =
    `The destination "${name}" was changed meanwhile. Nothing was changed; ` +
    'read it again, then repeat your change.'
  return new Fault(412, 'PRECONDITION_FAILED', message)
}

/** The line of a change in the audit. */
function noteOf(verb: string, name: string): ChangeNote {
  return { service: 'hooks', action: `destination ${verb}`, subject: name }
}

async function noRoomFor(tx: Executor, name: string): Promise<Fault> {
  const isNamed = (one: { name: string }) => one.name === name
  let message = `There are ${MAX_DESTINATIONS} destinations already; remove one first.`
  if ((await q.listTargets(tx, {})).some(isNamed)) {
    message = `There is a destination "${name}" already; choose another name or remove it first.`
  } else if ((await q.listRemovals(tx, {})).some(isNamed)) {
    message = `The destination "${name}" is still being removed; choose another name or wait.`
  }
  return new Fault(409, 'CONFLICT', message, { field: 'name' })
}

const ALLOW_LIST = 'HOOKS_REPLAY_TARGETS'

/**
 * The destinations as people see them: without the tokens in their URLs; or the one of a name.
 */
export async function listDestinations(
  db: Database,
  name: string | null = null,
  count_up_to = COUNT_UP_TO,
): Promise<readonly Destination[]> {
  const rows = await q.listDestinations(db, { name, count_up_to })
  return rows.map((row) => ({ ...row, url: redactUrlTokens(row.url) }))
}

/** One of them; throws 404. */
export async function findDestination(
  db: Database,
  name: string,
  countUpTo = COUNT_UP_TO,
): Promise<Destination> {
  const [found] = await listDestinations(db, name, countUpTo)
  if (found === undefined) throw unknown(name)
  return found
}

/** Sets whether a destination is delivered to; enabled again, it gets what came meanwhile. */
export async function enableDestination(
  tools: ChangeTools,
  name: string,
  enabled: boolean,
): Promise<void> {
  await makeChange(tools, noteOf(enabled ? 'enable' : 'disable', name), async (tx) => {
    if ((await q.enableDestination(tx, { name, enabled })) === undefined) throw unknown(name)
  })
}

/**
 * Removes a destination and its deliveries; attempts stay on the pages of their events. A large
 * backlog is removed by the running instances afterwards, see `removals.ts`.
 */
export async function removeDestination(tools: ChangeTools, name: string): Promise<void> {
  await makeChange(tools, noteOf('remove', name), async (tx) => {
    if ((await q.removeDestination(tx, { name })) === undefined) throw unknown(name)
  })
  for (let from: number | null = 0, step = 0; from !== null && step < QUICK_STEPS; step++) {
    from = await removeStep(tools.db, name, from)
  }
}

/**
 * Makes the deliveries of events from `since` on due that wait for another try; with `dead` also
 * those that were given up. Returns how many.
 */
export async function retryDeliveries(
  tools: ChangeTools,
  name: string,
  { dead, since }: { dead: boolean; since: Since },
): Promise<number> {
  const { db } = tools
  await findDestination(db, name, 0)
  const from =
    'id' in since ? since.id : (await eventQueries.firstIdSince(db, { since: since.time })).id
  // The line is written with the first step: each step is a transaction of its own.
  let step = await makeChange(tools, noteOf('retry', name), (tx) =>
    q.retryDeliveries(tx, { name, from, dead }),
  )
  let total = step.retried
  while (step.next_from !== null) {
    step = await q.retryDeliveries(db, { name, from: step.next_from, dead })
    total += step.retried
  }
  return total
}

export function unknown(name: string): Fault {
  return notFound(`There is no destination "${name}"; see the list of destinations.`)
}
