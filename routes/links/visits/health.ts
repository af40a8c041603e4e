import * as Type from '../../../kernel/schema.ts'
import { FOUND, Health, HealthState } from '../../../db/links/visits/health.ts'
import { healthView } from '../../../html/links/visits/health/report.ts'
import { field, withDefault } from '../../../kernel/validate.ts'
import { healthOf, listChecked, setChecked } from '../../../services/links/visits/health/health.ts'
import { signedIn, token } from '../access.ts'
import { action, api, Id, page, shortLinks } from '../kit.ts'
import { changeableLink, readableLink } from '../names/links/links.ts'
import { checkedList, nextAddress } from '../paging.ts'

const tag = 'Health'
const ROWS = 50
const PATH = '/-/health'
const params = { id: Id }
const health = { description: 'What is known of its address', schema: Health }

const State = field(withDefault(HealthState, 'broken'), 'must be broken, unknown or ok')
const Enabled = field(Type.Boolean(), 'is required and must be true or false')

/** Whether the addresses of links are still there, and which links are left out. */
export const healthEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/checked-links',
    access: token('full', 'read'),
    id: 'listCheckedLinks',
    tag,
    summary: "List the caller's links whose address is in a state, by slug; admins get all.",
    query: Type.Object({ state: State, ...checkedList.query.properties }),
    returns: checkedList.returns,
    answer: ({ app: { links }, caller, query: { state, ...query } }) =>
      checkedList.read(query, (slice) => listChecked(links.db, caller, state, slice)),
  }),

  api({
    method: 'GET',
    path: '/api/v1/links/:id/check',
    access: token('full', 'read'),
    id: 'getCheck',
    tag,
    summary: 'Get what the check of a link has found.',
    params,
    find: readableLink,
    returns: health,
    answer: ({ app: { links }, params: { id } }) => healthOf(links.db, id),
  }),

  ...action({
    params,
    find: changeableLink,
    body: Type.Object({ enabled: Enabled }),
    act: ({ app: { links }, caller, params: { id }, body, now }) =>
      setChecked(links.db, caller, id, body.enabled, now),
    api: {
      method: 'PUT',
      path: '/api/v1/links/:id/check',
      access: token('full'),
      id: 'setCheck',
      tag,
      summary: 'Leave the address of a link out of the checks, or have it checked.',
      replaces: {
        current: ({ app: { links }, params: { id } }) => healthOf(links.db, id),
        mayDiffer: ['checkable', 'state', ...FOUND],
      },
      returns: health,
    },
    form: {
      path: '/-/links/:id/check',
      access: signedIn,
      answer: ({ params: { id } }) => ({
        location: `/-/links/${id}`,
        done: ['saved'],
      }),
    },
  }),

  page({
    path: PATH,
    access: signedIn,
    query: Type.Object({ state: State, cursor: checkedList.query.properties.cursor }),
    async answer({ app, caller, query: { state, cursor }, context }) {
      const query = { limit: ROWS, ...(cursor !== undefined && { cursor }) }
      const { checked_links: links, next_cursor } = await checkedList.read(query, (slice) =>
        listChecked(app.links.db, caller, state, slice),
      )
      const next = nextAddress(context, next_cursor)
      const interval = app.links.checkInterval
      const ofAll = caller.role === 'admin'
      return healthView({ links, next, state, interval, ofAll, short: shortLinks(app) })
    },
  }),
]
