import type { Destination } from '../db/hooks/destinations.ts'
import { accepted } from '../kernel/variables.ts'
import { validate } from '../kernel/validate.ts'
import {
  addDestination,
  COUNT_UP_TO,
  DestinationForm,
  enableDestination,
  listDestinations,
  RATE_FORM,
  readRate,
  removeDestination,
  retryDeliveries,
} from '../services/hooks/destinations/destinations.ts'
import { readSince } from '../services/hooks/events/filter.ts'
import { command, JSON_FLAG, readFields, text, value, type Call, type Command } from './command.ts'
import { printRows } from './output.ts'

const NAME = text('NAME', 'the name of the destination')

const ADD_ARGS = {
  name: NAME,
  url: text('URL', 'an http:// or https:// URL without credentials'),
}
const ADD_FLAGS = {
  provider: text('PROVIDER', 'only events of this provider'),
  'event-type': text('TYPE', 'only events of this type'),
  'json-member': text('PATH=VALUE', 'only events whose body has this value'),
  ordered: { summary: 'one event at a time, in order: a failed one holds up those behind it' },
  rate: value('N/s', 'the maximum of deliveries a second', accepted(RATE_FORM, readRate)),
}

/** `gatehouse destination …`: where events are delivered onwards. */
export const commands = [
  command({
    name: 'destination add',
    summary: 'deliver each event from now on to a URL, with retries, over restarts',
    args: ADD_ARGS,
    flags: ADD_FLAGS,
    needs: 'database',
    check: (call) => void readForm(call),
    async run(call, tools) {
      const replayTargets = tools.config.current.HOOKS_REPLAY_TARGETS
      const form = readForm(call)
      await addDestination({ ...tools, replayTargets }, form)
      tools.output.err(`${form.name} gets the events from now on`)
    },
  }),
  command({
    name: 'destination list',
    summary: 'list the destinations, with the delivered and waiting events of each',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output }) {
      printRows(output, json, await listDestinations(db), {
        NAME: ({ name }) => name,
        STATE: ({ disabled_by }) =>
          disabled_by === null ? 'enabled' : `disabled by ${disabled_by}`,
        DELIVERED: ({ delivered }) => String(delivered),
        WAITING: ({ waiting }) => countText(waiting),
        DEAD: ({ dead }) => countText(dead),
        GAP: ({ gap }) => String(gap),
        'LAST ANSWER': answerText,
        URL: ({ url }) => url,
      })
    },
  }),
  switchCommand('enable', 'deliver to a destination, also what came while it was disabled'),
  switchCommand('disable', 'deliver nothing to a destination until it is enabled'),
  command({
    name: 'destination remove',
    summary: 'remove a destination and its waiting deliveries',
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await removeDestination(tools, name)
      tools.output.err(`${name} is removed`)
    },
  }),
  command({
    name: 'destination retry',
    summary: 'try at once what waits for another try',
    args: { name: NAME },
    flags: {
      dead: { summary: 'also what was given up, from the first try on' },
      since: value(
        'ID|TIME',
        'only events from this one or this time on',
        accepted('an event id or a time such as 2026-01-31T12:00:00Z', readSince),
      ),
    },
    needs: 'database',
    async run({ args: { name }, flags: { dead, since = { id: 0 } } }, tools) {
      const retried = await retryDeliveries(tools, name, { dead, since })
      tools.output.err(
        `${retried} ${retried === 1 ? 'delivery is' : 'deliveries are'} tried again`,
      )
    },
  }),
]

function switchCommand(verb: 'enable' | 'disable', summary: string): Command {
  return command({
    name: `destination ${verb}`,
    summary,
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await enableDestination(tools, name, verb === 'enable')
      tools.output.err(`${name} is ${verb}d`)
    },
  })
}

/** The destination that a call describes, checked as the page checks it. */
function readForm({ args, flags }: Call<typeof ADD_ARGS, typeof ADD_FLAGS>): DestinationForm {
  const { provider, 'event-type': event_type, 'json-member': json, ordered, rate } = flags
  const fields = { ...args, provider, event_type, json, ordered }
  const form = readFields(() => validate(DestinationForm, fields), Object.keys(args))
  return { ...form, rate: rate ?? null }
}

/** Counts end at a limit. */
function countText(count: number): string {
  return count < COUNT_UP_TO ? String(count) : `${count} or more`
}

function answerText({ last_at, last_status, last_detail }: Destination): string {
  if (last_at === null) return 'none yet'
  return `${last_status ?? last_detail ?? 'no answer'}, ${last_at.toISOString()}`
}
