import type { Destination } from '../../db/hooks/send/destinations.ts'
import { accepted, someOf } from '../../kernel/variables.ts'
import { validate } from '../../kernel/validate.ts'
import {
  listDeliveries,
  retryChosen,
  RetryRequest,
} from '../../services/hooks/send/destinations/deliveries.ts'
import {
  addDestination,
  COUNT_UP_TO,
  enableDestination,
  findDestination,
  listDestinations,
  removeDestination,
  retryDeliveries,
  setDestination,
} from '../../services/hooks/send/destinations/destinations.ts'
import {
  DestinationForm,
  DestinationUpdate,
  RATE_FORM,
  readRate,
  SCHEME_FORM,
  SIGNING_SCHEMES,
} from '../../services/hooks/send/destinations/form.ts'
import { readSince } from '../../services/hooks/log/events/filter.ts'
import {
  command,
  fieldsOf,
  JSON_FLAG,
  lines,
  readFields,
  secretFlag,
  text,
  UsageError,
  value,
  type Call,
  type Command,
  type DatabaseTools,
} from '../frame/command.ts'
import { printRows } from '../frame/output.ts'

const NAME = text('NAME', 'the name of the destination')

const URL_TEXT = text('URL', 'an http:// or https:// URL without credentials')
const SCHEME = accepted(SCHEME_FORM, (text) => SIGNING_SCHEMES.find((name) => name === text))

/** What may be configured beside the URL. */
const CONFIG_FLAGS = {
  provider: lines('PROVIDER', 'only events of this provider'),
  'event-type': lines('TYPE', 'only events of this type; * stands for any characters'),
  'json-member': lines('PATH=VALUE', 'only events whose body has this value'),
  ordered: { summary: 'one event at a time, in order: a failed one holds up those behind it' },
  rate: value('N/s', 'the maximum of deliveries a second', accepted(RATE_FORM, readRate)),
  'sign-with': value('SCHEME', 'how it is signed by a secret of its own', SCHEME),
  'sign-secret': secretFlag('the secret of that signature'),
  authorization: secretFlag('"Bearer TOKEN" or "Basic NAME:PASSWORD"'),
  headers: secretFlag('further headers, "Name: value" on a line each'),
  'body-template': {
    ...text(
      'JSON',
      'slack, discord, ntfy or teams, or JSON with placeholders; - is standard input',
    ),
    fromInput: true,
  },
  timeout: text('SECONDS', 'how long an answer may take'),
}
const ADD_ARGS = { name: NAME, url: URL_TEXT }
const ADD_FLAGS = {
  ...CONFIG_FLAGS,
  since: text('ID|TIME', 'the first event that it gets, instead of the next one'),
}
/** Credentials that a destination may lose. */
const REMOVABLE = someOf('sign-with', 'authorization', 'headers')
const SET_ARGS = { name: NAME }
const SET_FLAGS = {
  ...CONFIG_FLAGS,
  url: URL_TEXT,
  without: value('WHAT', `remove credentials: ${REMOVABLE.form}`, REMOVABLE),
  unordered: { summary: 'several events at a time again' },
  since: text('ID|TIME', 'send again all events from this one on'),
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
      const form = readForm(call)
      await addDestination(toolsOf(tools), form)
      const first = form.since === undefined ? 'from now on' : `from ${form.since} on`
      tools.output.err(`${form.name} gets the events ${first}`)
    },
  }),
  command({
    name: 'destination set',
    summary: 'change a destination; waiting deliveries stay, and settings that no flag names',
    args: SET_ARGS,
    flags: SET_FLAGS,
    needs: 'database',
    check(call) {
      const given = Object.values(call.flags)
      if (given.every((one) => one === undefined || one === false)) {
        throw new UsageError('Missing a setting')
      }
      readUpdate(call, { url: 'https://example.com/' })
    },
    async run(call, tools) {
      const { name } = call.args
      const present = await findDestination(tools.db, name)
      // Stored credentials stay unless a flag names them.
      const kept = {
        ...present,
        sign_with: undefined,
        headers: undefined,
        authorization: undefined,
      }
      const form = readUpdate(call, kept)
      await setDestination(toolsOf(tools), name, form, (seen) => seen === present.version)
      tools.output.err(`${name} is changed`)
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
    name: 'destination deliveries',
    summary: 'list what waits for a destination, with the last answer to each',
    args: { name: NAME },
    flags: {
      dead: { summary: 'what was given up instead' },
      cursor: text('CURSOR', 'go on after the last line of the page before'),
      json: JSON_FLAG,
    },
    needs: 'database',
    async run({ args: { name }, flags: { dead, cursor = '', json } }, { db, output }) {
      const query = { state: dead ? 'dead' : 'waiting', cursor, limit: 200 } as const
      const { deliveries, next_cursor } = await listDeliveries(db, name, query)
      printRows(output, json, deliveries, {
        EVENT: ({ event_id }) => String(event_id),
        PROVIDER: ({ provider }) => provider,
        TYPE: ({ event_type }) => event_type ?? '',
        TRIES: ({ tries }) => String(tries),
        'NEXT TRY': ({ next_at }) => next_at?.toISOString() ?? 'given up',
        'LAST ANSWER': answerText,
      })
      if (next_cursor !== null) output.err(`more with --cursor ${next_cursor}`)
    },
  }),
  command({
    name: 'destination retry',
    summary: 'try at once what waits for another try',
    args: { name: NAME },
    flags: {
      event: lines('ID', 'only the delivery of this event, also if it was given up'),
      dead: { summary: 'also what was given up, from the first try on' },
      since: value(
        'ID|TIME',
        'only events from this one or this time on',
        accepted('an event id or a time such as 2026-01-31T12:00:00Z', readSince),
      ),
    },
    needs: 'database',
    check: ({ flags: { event, dead, since } }) => {
      if (event === undefined) return
      readEvents(event)
      if (dead || since !== undefined) throw new UsageError('--event takes no other flag')
    },
    async run({ args: { name }, flags: { event, dead, since = { id: 0 } } }, tools) {
      const retried =
        event === undefined
          ? await retryDeliveries(tools, name, { dead, since })
          : await retryChosen(tools, name, readEvents(event))
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
  const fields = { ...args, ...given(flags) }
  return readFields(() => validate(DestinationForm, fields), Object.keys(args))
}

/** What a destination is changed to: what it is at present, and what the flags say. */
function readUpdate(
  { flags }: Call<typeof SET_ARGS, typeof SET_FLAGS>,
  present: Readonly<Record<string, unknown>>,
): DestinationUpdate {
  const { ordered, unordered, without = [] } = flags
  if (ordered && unordered) {
    throw new UsageError('--ordered and --unordered exclude each other')
  }
  const removed = without.map((flag) => [flag.replace('-', '_'), null] as const)
  const fields = {
    ...present,
    ...given({ ...flags, ordered: ordered || undefined }),
    ...(unordered && { ordered: false }),
    ...Object.fromEntries(removed),
  }
  return readFields(() => validate(DestinationUpdate, fields))
}

/** The fields that flags name; `provider` and `event_type` say the same as their lists. */
function given(flags: Readonly<Record<string, unknown>>) {
  const { 'sign-with': scheme, 'sign-secret': secret } = flags
  const isSigned = scheme !== undefined || secret !== undefined
  return {
    ...fieldsOf(DestinationForm, flags),
    ...(isSigned && { sign_with: { scheme, secret } }),
  }
}

function toolsOf(tools: DatabaseTools) {
  return { ...tools, replayTargets: tools.config.current.HOOKS_REPLAY_TARGETS }
}

/** Counts end at a limit. */
function countText(count: number): string {
  return count < COUNT_UP_TO ? String(count) : `${count} or more`
}

/** The ids that --event has. */
function readEvents(text: string): readonly number[] {
  const events = text.split('\n').map(Number)
  return readFields(() => validate(RetryRequest, { events })).events ?? []
}

function answerText({
  last_at,
  last_status,
  last_detail,
}: Pick<Destination, 'last_at' | 'last_status' | 'last_detail'>): string {
  if (last_at === null) return 'none yet'
  return `${last_status ?? last_detail ?? 'no answer'}, ${last_at.toISOString()}`
}
