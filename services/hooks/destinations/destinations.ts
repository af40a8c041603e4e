import type { Database, Executor } from '../../../db/client.ts'
import { destinationQueries as q, type Destination } from '../../../db/hooks/destinations.ts'
import { eventQueries } from '../../../db/hooks/events.ts'
import { providerQueries } from '../../../db/hooks/providers.ts'
import { Fault, notFound } from '../../../kernel/fault.ts'
import type { Precondition } from '../../../kernel/http/headers.ts'
import type { HostSet } from '../../../kernel/net/addresses.ts'
import { isPublicTarget } from '../../../kernel/net/outbound.ts'
import { makeChange, type ChangeNote, type ChangeTools } from '../../audit.ts'
import { readSince, type Since } from '../events/filter.ts'
import { redactUrlTokens } from '../redact.ts'
import type { SigningSecrets } from '../schemes/secrets.ts'
import { NO_CREDENTIALS, sealCredentials } from './credentials.ts'
import { checkTemplate } from './template.ts'
import { configOf, unprocessable, type DestinationForm, type DestinationUpdate } from './form.ts'

const MAX_DESTINATIONS = 100
/** Waiting and dead deliveries are counted up to here: beyond, it is enough to know it. */
export const COUNT_UP_TO = 10_000
/** Deliveries that one statement makes due again. */
const RETRY_BATCH = 5_000

/** What is needed to configure a destination. */
export interface DestinationTools extends ChangeTools {
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: HostSet | undefined
  secrets: SigningSecrets
}

/**
 * Adds a destination, which gets the events from now on, or from `since` on.
 */
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
 * Changes what is configured of a destination. What it is owed stays, whatever the filters are now;
 * they count for the events that it has not looked at.
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
async function checkTarget({ replayTargets }: DestinationTools, url: string): Promise<void> {
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
  const message = `There is no provider "${stranger}"; see the list of providers.`
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
  const message = `since must not be after event ${present}, up to which events were looked at.`
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
  const known = (await q.listTargets(tx, {})).some((one) => one.name === name)
  const message = known
    ? `There is a destination "${name}" already; choose another name or remove it first.`
    : `There are ${MAX_DESTINATIONS} destinations already; remove one first.`
  return new Fault(409, 'CONFLICT', message, { field: 'name' })
}

const ALLOW_LIST = 'HOOKS_REPLAY_TARGETS'

/**
 * The destinations as people see them: without the tokens in their URLs; or the one of a name.
 */
export async function listDestinations(
  db: Database,
  name: string | null = null,
): Promise<readonly Destination[]> {
  const rows = await q.listDestinations(db, { name, count_up_to: COUNT_UP_TO })
  return rows.map((row) => ({ ...row, url: redactUrlTokens(row.url) }))
}

/** One of them; throws 404. */
export async function findDestination(db: Database, name: string): Promise<Destination> {
  const [found] = await listDestinations(db, name)
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

/** Removes a destination with what it is owed; attempts stay on the pages of their events. */
export async function removeDestination(tools: ChangeTools, name: string): Promise<void> {
  await makeChange(tools, noteOf('remove', name), async (tx) => {
    if ((await q.removeDestination(tx, { name })) === undefined) throw unknown(name)
  })
}

/**
 * Has deliveries tried at once that wait for another try, and with `dead` those that were given
 * up, from an event or a time on; gives how many.
 */
export async function retryDeliveries(
  tools: ChangeTools,
  name: string,
  { dead, since }: { dead: boolean; since: Since },
): Promise<number> {
  const { db } = tools
  if (!(await q.listTargets(db, {})).some((one) => one.name === name)) throw unknown(name)
  const from =
    'id' in since ? since.id : (await eventQueries.firstIdSince(db, { since: since.time })).id
  const retry = async (on: Executor) =>
    (await q.retryDeliveries(on, { name, from, dead, limit: RETRY_BATCH })).retried
  // The line is written with the first batch: each batch is a transaction of its own.
  let retried = await makeChange(tools, noteOf('retry', name), retry)
  let total = retried
  while (retried === RETRY_BATCH) {
    retried = await retry(db)
    total += retried
  }
  return total
}

function unknown(name: string): Fault {
  return notFound(`There is no destination "${name}"; see the list of destinations.`)
}
