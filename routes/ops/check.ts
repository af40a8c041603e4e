import * as Type from '../../kernel/schema.ts'
import { checkView } from '../../html/ops/check.ts'
import { newForm, type FormState, type Typed, type View } from '../../kernel/http/view.ts'
import { formatDuration } from '../../kernel/time.ts'
import { field } from '../../kernel/validate.ts'
import { lastSaid } from '../../services/ops/watch/beats.ts'
import { findDefinition } from '../../services/ops/watch/checks/definitions.ts'
import { findHealth } from '../../services/ops/watch/checks/health.ts'
import { barOf, lineOf, readHistory } from '../../services/ops/watch/checks/history.ts'
import { membersOf, writeMember } from '../../services/ops/watch/checks/members.ts'
import { findInvestigation } from '../../services/ops/alerts/investigations/waiting.ts'
import { CheckForm, fieldsOf } from './watch/checks/form.ts'
import { idOf, page, type OpsApp } from './kit.ts'
import { MuteForm } from './watch/mutes.ts'

const PATH = '/checks'
/** Changes of a state below an id. */
export const Before = Type.Object({
  before: Type.Optional(field(Type.Integer({ minimum: 1 }), 'must be a positive integer')),
})

/** The page of a check: what it found, and which session looks into it. */
export const checkPageEndpoints = [
  page({
    path: `${PATH}/:id`,
    params: { id: idOf('check') },
    query: Before,
    answer: ({ app, params: { id }, query, now }) => showCheck(app, id, now, query),
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
