import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import type { Definition } from '../../db/ops/checks.ts'
import { checksView, type ChecksView } from '../../html/ops/checks.ts'
import { checkView } from '../../html/ops/checks/check.ts'
import { newCheckView, type CheckFields } from '../../html/ops/checks/form.ts'
import { badRequest } from '../../kernel/fault.ts'
import { newForm, type FormState, type Typed, type View } from '../../kernel/http/view.ts'
import { formatDuration } from '../../kernel/time.ts'
import { field, validate } from '../../kernel/validate.ts'
import { runNow } from '../../services/ops/checks/asked.ts'
import {
  addCheck,
  changeCheck,
  CheckUpdate,
  findDefinition,
  NewCheck,
  removeCheck,
} from '../../services/ops/checks/definitions.ts'
import {
  findHealth,
  ListedHealth,
  listHealth,
  readHealth,
  showHealth,
  ShownHealth,
  toListed,
  type Health,
} from '../../services/ops/checks/health.ts'
import {
  barOf,
  History,
  lineOf,
  readDays,
  readHistory,
  toHistory,
} from '../../services/ops/checks/history.ts'
import {
  membersOf,
  readMember,
  TYPES_BY_HAND,
  writeMember,
} from '../../services/ops/checks/members.ts'
import { CHECK_SCHEMAS } from '../../services/ops/checks/run.ts'
import { findInvestigation } from '../../services/ops/investigations/waiting.ts'
import { action, api, idOf, page, type OpsApp } from './kit.ts'
import { MuteForm } from './mutes.ts'
import { Filter, listApi, paging, readPage, type Paging } from './paging.ts'

const PATH = '/checks'
const params = { id: idOf('check') }
const MAX_SERVICES = 50
const Text = Type.Optional(Type.String({ maxLength: 16_384 }))
/** Changes of a state below an id. */
const Before = Type.Object({
  before: Type.Optional(field(Type.Integer({ minimum: 1 }), 'must be a positive integer')),
})
/** `beat_url` is the address of a heartbeat, which is not shown again. */
const NewHealth = Type.Object({
  ...ShownHealth.properties,
  beat_url: Type.Optional(Type.String()),
})

/** What the forms of checks of all types have; each has the members of its own type. */
const CheckForm = Type.Object({
  ...{ service: Text, name: Text, type: Text },
  ...Object.fromEntries(membersOf().map(({ name }) => [name, Text])),
})

/** What is checked, and what came of it. */
export const checkEndpoints = [
  page({
    path: PATH,
    query: Type.Object({ ...paging(MAX_SERVICES), service: Filter }),
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
    body: NewCheck,
    async act({ app, actor, body, now }) {
      const { ops } = app
      const { id, token } = await addCheck({ ...ops, actor }, body, now)
      await ops.registry.refresh()
      const shown = await showHealth(ops.db, id, now)
      const beat = token !== null && { beat_url: `${app.baseUrl()}/beat/${token}` }
      return { ...shown, ...beat }
    },
    api: {
      method: 'POST',
      path: '/api/v1/checks',
      id: 'createCheck',
      tag: 'Checks',
      summary: 'Add a check beside those of the inventory file.',
      refuses: [409],
      returns: { status: 201, description: 'The new check', schema: NewHealth },
    },
    form: {
      path: PATH,
      body: CheckForm,
      toBody: ({ body }) => validate(NewCheck, { service: body.service, check: checkIn(body) }),
      answer: ({ app, now }, { id, beat_url }: Type.Static<typeof NewHealth>) =>
        beat_url === undefined
          ? { location: `${PATH}/${id}`, done: ['added', 'the check'] }
          : showCheck(app, id, now, { address: beat_url }),
      refused: (_call, form) => showNew(form.typed['type'] ?? '', form),
    },
  }),

  ...action({
    params,
    body: CheckUpdate,
    async act({ app: { ops }, actor, params: { id }, body, now }) {
      await changeCheck({ ...ops, actor }, id, body.check, now)
      await ops.registry.refresh()
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
      await ops.registry.refresh()
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

  ...action({
    params,
    async act({ app: { ops }, params: { id } }) {
      await runNow(ops.db, id, ops.clock.now)
      return showHealth(ops.db, id, ops.clock.now())
    },
    api: {
      method: 'POST',
      path: '/api/v1/checks/:id/run',
      id: 'runCheck',
      tag: 'Checks',
      summary: 'Run a check now; the result counts at once.',
      returns: { description: 'The check with what was found', schema: ShownHealth },
    },
    form: {
      path: `${PATH}/:id/run`,
      async answer({ app, params: { id } }) {
        const view = await showCheck(app, id, app.ops.clock.now())
        return { ...view, location: `${PATH}/${id}`, done: ['checked', 'just now'] }
      },
    },
  }),

  page({
    path: `${PATH}/new`,
    query: Type.Object({ type: Filter }),
    answer: ({ query }) => showNew(query.type ?? ''),
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

type Fields = Readonly<Record<string, string | undefined>>

/** The check that the fields of a form describe; an empty field is one that is left out. */
function checkIn({ type = '', name = '', ...fields }: Fields): Definition {
  if (!TYPES_BY_HAND.some((known) => known === type)) {
    throw badRequest(`type must be one of ${TYPES_BY_HAND.join(', ')}`, 'type')
  }
  const members = membersOf(type).flatMap((member) => {
    const text = fields[member.name]?.trim() ?? ''
    return text === '' ? [] : [[member.name, readMember(member, text)] as const]
  })
  return { type, ...(name.trim() !== '' && { name }), ...Object.fromEntries(members) }
}

function showNew(type: string, form: FormState = newForm(CheckForm)): View {
  return newCheckView({ types: TYPES_BY_HAND, fields: fieldsOf(type, form) })
}

/** The fields of a type; undefined for one that can't be made by hand. */
function fieldsOf(type: string, form: FormState): CheckFields | undefined {
  const known = TYPES_BY_HAND.find((one) => one === type)
  const schema = known && CHECK_SCHEMAS.get(known)
  return schema && { type, members: membersOf(type), schema, form }
}

/** What a check's page shows beside the usual. */
interface Shown {
  /** The form that was refused. */
  form?: FormState
  /** The address of a heartbeat that was just made. */
  address?: string | null
  /** Only changes below this id. */
  before?: number | null
}

async function showCheck(
  { ops }: OpsApp,
  id: number,
  now: Date,
  { form: refused, address = null, before = null }: Shown = {},
): Promise<View> {
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
  return checkView({ check, investigation, fields, every, mute: newForm(MuteForm), past, address })
}

/** A service alone shows all its checks, with the bars of their days. */
async function pageOfChecks(
  db: Database,
  health: Health,
  query: Paging & { service: string | null },
  now: Date,
): Promise<ChecksView> {
  const { service, offset, limit } = query
  if (service !== null) {
    const services = health.services.filter(({ name }) => name === service)
    const ids = services.flatMap(({ checks }) => checks.map(({ id }) => id))
    const path = `${PATH}?service=${encodeURIComponent(service)}`
    const days = await readDays(db, ids, now)
    const bars = new Map(ids.map((id) => [id, barOf(days.get(id) ?? [], now)]))
    return { health, services, path, older: undefined, bars }
  }
  const { rows: services, older } = await readPage(PATH, query, async (asked) =>
    health.services.slice(asked.offset, asked.offset + asked.limit),
  )
  const path = offset === 0 ? PATH : `${PATH}?limit=${limit}&offset=${offset}`
  return { health, services, path, older, bars: undefined }
}
