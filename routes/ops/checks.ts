import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import { checksView, type ChecksView } from '../../html/ops/checks.ts'
import { checkView } from '../../html/ops/checks/check.ts'
import { newForm, type FormState, type Typed, type View } from '../../kernel/http/view.ts'
import { formatDuration } from '../../kernel/time.ts'
import { field } from '../../kernel/validate.ts'
import { lastSaid } from '../../services/ops/beats.ts'
import {
  changeCheck,
  CheckUpdate,
  findDefinition,
  removeCheck,
} from '../../services/ops/checks/definitions.ts'
import {
  badness,
  findHealth,
  ListedHealth,
  listHealth,
  readHealth,
  showHealth,
  ShownHealth,
  toListed,
  type Health,
  type ServiceHealth,
} from '../../services/ops/checks/health.ts'
import {
  barOf,
  History,
  lineOf,
  readDays,
  readHistory,
  toHistory,
} from '../../services/ops/checks/history.ts'
import { membersOf, writeMember } from '../../services/ops/checks/members.ts'
import { findInvestigation } from '../../services/ops/investigations/waiting.ts'
import { checkIn, CheckForm, fieldsOf } from './checks/form.ts'
import { action, api, idOf, page, type OpsApp } from './kit.ts'
import { MuteForm } from './mutes.ts'
import {
  Filter,
  listApi,
  pagingByState,
  pathOf,
  readPageAfter,
  WORST,
  type Key,
} from './paging.ts'

const PATH = '/checks'
const params = { id: idOf('check') }
const ChecksQuery = Type.Object({ ...pagingByState(50), service: Filter })
const FIRST_SERVICES = { limit: 50, after: WORST }
/** Changes of a state below an id. */
const Before = Type.Object({
  before: Type.Optional(field(Type.Integer({ minimum: 1 }), 'must be a positive integer')),
})
/** What is checked, and what came of it. */
export const checkEndpoints = [
  page({
    path: PATH,
    query: ChecksQuery,
    async answer({ app: { ops }, query, now }) {
      return checksView(await pageOfChecks(ops.db, await readHealth(ops, now), query, now))
    },
  }),

  listApi('Checks', {
    summary: 'List the checks with their states, by service and name.',
    row: ListedHealth,
    list: async ({ app: { ops }, now }) => (await listHealth(ops.db, now)).map(toListed),
  }),

  api({
    method: 'GET',
    path: '/api/v1/checks/:id',
    id: 'getCheck',
    tag: 'Checks',
    summary: 'Get a check, with its definition if it was made by hand.',
    params,
    returns: { description: 'The check', schema: ShownHealth },
    answer: ({ app: { ops }, params: { id }, now }) => showHealth(ops.db, id, now),
  }),

  ...action({
    params,
    body: CheckUpdate,
    async act({ app: { ops }, actor, params: { id }, body, now }) {
      await changeCheck({ ...ops, actor }, id, body.check, now)
      await ops.checksChanged()
      return showHealth(ops.db, id, now)
    },
    api: {
      method: 'PUT',
      path: '/api/v1/checks/:id',
      id: 'updateCheck',
      tag: 'Checks',
      summary: 'Change the definition of a check that was made by hand; service and name stay.',
      refuses: [409],
      returns: { description: 'The check as it is now', schema: ShownHealth },
    },
    form: {
      path: `${PATH}/:id`,
      body: CheckForm,
      toBody: ({ body }) => ({ check: checkIn(body) }),
      answer: ({ params: { id } }) => ({ location: `${PATH}/${id}`, done: ['saved'] }),
      refused: ({ app, params: { id }, now }, form) => showCheck(app, id, now, { form }),
    },
  }),

  ...action({
    params,
    async act({ app: { ops }, actor, params: { id }, now }) {
      await removeCheck({ ...ops, actor }, id, now)
      await ops.checksChanged()
    },
    api: {
      method: 'DELETE',
      path: '/api/v1/checks/:id',
      id: 'deleteCheck',
      tag: 'Checks',
      summary: 'Remove a check that was made by hand; its history stays.',
      refuses: [409],
      returns: { description: 'It is gone' },
    },
    form: {
      path: `${PATH}/:id/delete`,
      answer: () => ({ location: PATH, done: ['removed', 'the check'] }),
    },
  }),

  page({
    path: `${PATH}/:id`,
    params,
    query: Before,
    answer: ({ app, params: { id }, query, now }) => showCheck(app, id, now, query),
  }),

  api({
    method: 'GET',
    path: '/api/v1/checks/:id/history',
    id: 'getCheckHistory',
    tag: 'Checks',
    summary: 'Get what a check was before: uptime, hours, days and changes of its state.',
    params,
    query: Before,
    returns: { description: 'The history', schema: History },
    async answer({ app: { ops }, params: { id }, query: { before }, now }) {
      return toHistory(await readHistory(ops.db, id, now, before ?? null))
    },
  }),
]

/** What a check's page shows beside the usual. */
interface Shown {
  /** The form of the definition that was refused. */
  form?: FormState
  /** The form of the mute that was refused. */
  mute?: FormState
  /** It was muted by the request that this answers. */
  isMutedNow?: boolean
  /** The address of a heartbeat that was just made. */
  address?: string | null
  /** Only changes below this id. */
  before?: number | null
}

/** The page of a check. */
export async function showCheck(
  { ops }: OpsApp,
  id: number,
  now: Date,
  given: Shown = {},
): Promise<View> {
  const { form: refused, mute = newForm(MuteForm), isMutedNow = false } = given
  const { address = null, before = null } = given
  const history = await readHistory(ops.db, id, now, before)
  const past = { history, bar: barOf(history.days, now), line: lineOf(history.hours, now) }
  const check = await findHealth(ops.db, id, now)
  const investigation = await findInvestigation(ops.db, ops, id, now)
  const definition = await findDefinition(ops.db, id)
  const stored = membersOf(check.type).map((member) => {
    return [member.name, writeMember(member, definition?.[member.name])] as const
  })
  const typed: Typed = refused?.typed ?? Object.fromEntries(stored)
  const form = { schema: CheckForm, fault: refused?.fault, typed }
  const fields = definition === null ? undefined : fieldsOf(check.type, form)
  const every = formatDuration(check.every_s)
  const path = before === null ? `${PATH}/${id}` : `${PATH}/${id}?before=${before}`
  const said = await lastSaid(ops.db, check)
  const about = { check, investigation, fields, every, past, said, address, path, now }
  return checkView({ ...about, mute, isMutedNow })
}

/** A service alone shows all its checks, with the bars of their days. */
async function pageOfChecks(
  db: Database,
  health: Health,
  query: Type.Static<typeof ChecksQuery>,
  now: Date,
): Promise<ChecksView> {
  const { service } = query
  if (service !== null) {
    const services = health.services.filter(({ name }) => name === service)
    const ids = services.flatMap(({ checks }) => checks.map(({ id }) => id))
    const path = `${PATH}?service=${encodeURIComponent(service)}`
    const days = await readDays(db, ids, now)
    const bars = new Map(ids.map((id) => [id, barOf(days.get(id) ?? [], now)]))
    return { health, services, path, older: undefined, bars }
  }
  const { rows: services, older } = await readPageAfter(
    PATH,
    query,
    placeOf,
    async ({ after: { rank, id }, limit }) => {
      const following = health.services.filter((service) => {
        const place = placeOf(service)
        return place.rank > rank || (place.rank === rank && place.id > id)
      })
      return following.slice(0, limit)
    },
  )
  const path = pathOf(PATH, query, FIRST_SERVICES)
  return { health, services, path, older, bars: undefined }
}

/** The place of a service in the list. */
function placeOf({ state, name }: ServiceHealth): Key<string> {
  return { rank: badness(state), id: name }
}
