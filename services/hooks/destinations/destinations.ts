import Type from 'typebox'
import type { Database, Executor } from '../../../db/client.ts'
import {
  destinationQueries as q,
  type Destination,
  type DestinationTarget,
} from '../../../db/hooks/destinations.ts'
import { eventQueries } from '../../../db/hooks/events.ts'
import { Fault, notFound } from '../../../kernel/fault.ts'
import type { HostSet } from '../../../kernel/net/addresses.ts'
import { isPublicTarget } from '../../../kernel/net/outbound.ts'
import { field, parsed } from '../../../kernel/validate.ts'
import { makeChange, type ChangeNote, type ChangeTools } from '../../audit.ts'
import { removeStep } from './removals.ts'
import { filterFields, filterOf, memberField, memberName, type Since } from '../events/filter.ts'
import { parseTarget, TARGET_FORM } from '../replays/outgoing.ts'
import { redactUrlTokens } from '../redact.ts'
import { isGenericName } from '../schemes/secrets.ts'

const MAX_DESTINATIONS = 100
const MAX_RATE = 10_000
/** Waiting and dead deliveries are counted up to here: beyond, it is enough to know it. */
export const COUNT_UP_TO = 10_000

/** The accepted form of a rate, in words. */
export const RATE_FORM = `a number of deliveries a second from 1 to ${MAX_RATE}, such as 50/s`

/** Reads a rate; null (no bound) for nothing, undefined for another form. */
export function readRate(text: string): number | null | undefined {
  if (text === '') return null
  const rate = Number(/^(\d{1,5})(?:\/s)?$/.exec(text)?.[1] ?? 0)
  return rate < 1 || rate > MAX_RATE ? undefined : rate
}

const NAME_FORM = 'must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.'
const { provider, event_type } = filterFields

/**
 * What a new destination is made from: the fields of the page and the arguments of the command.
 */
export const DestinationForm = Type.Object(
  {
    name: field(Type.String(), NAME_FORM, [isGenericName, NAME_FORM]),
    url: parsed(Type.String({ format: 'uri' }), `must be ${TARGET_FORM}.`, (given) => {
      const text = String(given).trim()
      return parseTarget(text) === undefined ? undefined : text
    }),
    provider,
    event_type,
    json: memberField,
    ordered: Type.Optional(Type.Boolean()),
    rate: parsed(
      Type.Optional(Type.Unsafe<number | null>({ type: 'string' })),
      `must be ${RATE_FORM}, or nothing.`,
      (given) => readRate(String(given).trim()),
    ),
  },
  // A filter that is spelled wrong would leave every event in.
  { additionalProperties: false },
)
export type DestinationForm = Type.Static<typeof DestinationForm>

/** What a new destination needs. */
interface DestinationTools extends ChangeTools {
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: HostSet | undefined
}

/**
 * Adds a destination, which gets the events from now on. Its address must be on the public
 * internet, unless an operator vouches for it; each connection checks it again.
 */
export async function addDestination(
  tools: DestinationTools,
  form: DestinationForm,
): Promise<void> {
  const { name, url, ordered = false, rate = null } = form
  const target = new URL(url)
  if (tools.replayTargets?.(target) !== true && (await isPublicTarget(target)) === false) {
    const message = `The host of the URL is not on the public internet; list it in ${ALLOW_LIST}.`
    throw new Fault(422, 'UNPROCESSABLE', message, { field: 'url' })
  }
  const { provider, event_type, members } = filterOf({ ...form, text: '' })
  const [path, value] = members?.[0] ?? [null, null]
  const row = {
    ...{ name, url, ordered, rate },
    ...{ provider, event_type },
    json_path: path,
    json_name: path === null ? null : memberName(path),
    json_value: value,
    most: MAX_DESTINATIONS,
  }
  await makeChange(tools, noteOf('add', name), async (tx) => {
    if ((await q.addDestination(tx, row)) === undefined) throw await noRoomFor(tx, name)
  })
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

/** The destinations as people see them: without the tokens in their URLs. */
export async function listDestinations(db: Database): Promise<readonly Destination[]> {
  const rows = await q.listDestinations(db, { count_up_to: COUNT_UP_TO })
  return rows.map((row) => ({ ...row, url: redactUrlTokens(row.url) }))
}

/** One of them; throws 404. */
export async function findDestination(db: Database, name: string): Promise<Destination> {
  const found = (await listDestinations(db)).find((one) => one.name === name)
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
  for (let from: number | null = 0, step = 0; from !== null && step < 2; step++) {
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
  const isNamed = (one: DestinationTarget) => one.kind === 'standing' && one.name === name
  if (!(await q.listTargets(db, {})).some(isNamed)) throw unknown(name)
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

function unknown(name: string): Fault {
  return notFound(`There is no destination "${name}"; see the list of destinations.`)
}
