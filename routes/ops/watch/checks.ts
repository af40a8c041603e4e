import * as Type from '../../../kernel/schema.ts'
import type { Database } from '../../../db/client.ts'
import { checksView, type ChecksView } from '../../../html/ops/watch/checks.ts'
import {
  changeCheck,
  CheckUpdate,
  removeCheck,
} from '../../../services/ops/watch/checks/definitions.ts'
import {
  badness,
  ListedHealth,
  listHealth,
  readHealth,
  showHealth,
  ShownHealth,
  toListed,
  type Health,
  type ServiceHealth,
} from '../../../services/ops/watch/checks/health.ts'
import {
  barOf,
  History,
  readDays,
  readHistory,
  toHistory,
} from '../../../services/ops/watch/checks/history.ts'
import { checkIn, CheckForm } from './checks/form.ts'
import { Before, showCheck } from '../check.ts'
import { action, api, idOf, page } from '../kit.ts'
import {
  Filter,
  listApi,
  pagingByState,
  pathOf,
  readPageAfter,
  WORST,
  type Key,
} from '../paging.ts'

const PATH = '/checks'
const params = { id: idOf('check') }
const ChecksQuery = Type.Object({ ...pagingByState(50), service: Filter })
const FIRST_SERVICES = { limit: 50, after: WORST }
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
      replaces: {
        current: ({ app: { ops }, params: { id }, now }) => showHealth(ops.db, id, now),
        mayDiffer: ['state', 'since', 'last_message'],
      },
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
