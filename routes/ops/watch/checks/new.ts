import * as Type from '../../../../kernel/schema.ts'
import { newCheckView } from '../../../../html/ops/watch/checks/form.ts'
import { newForm, type FormState, type Typed, type View } from '../../../../kernel/http/view.ts'
import { validate } from '../../../../kernel/validate.ts'
import {
  addCheck,
  checkToTry,
  NewCheck,
} from '../../../../services/ops/watch/checks/definitions.ts'
import { showHealth, ShownHealth } from '../../../../services/ops/watch/checks/health.ts'
import { TYPES_BY_HAND } from '../../../../services/ops/watch/checks/members.ts'
import type { CheckResult } from '../../../../services/ops/watch/checks/run.ts'
import { showCheck } from '../../check.ts'
import { action, form, page, type OpsApp } from '../../kit.ts'
import { Filter } from '../../paging.ts'
import { checkIn, CheckForm, fieldsOf } from './form.ts'

const PATH = '/checks'
/** What most people check first. */
const FIRST_TYPE = 'http'
/** How often most jobs run that somebody waits for. */
const USUAL_PERIOD = '1d'
/** Names of services that the form offers. */
const MAX_NAMES = 200

/** `beat_url` is the address of a heartbeat, which is not shown again. */
const NewHealth = Type.Object({
  ...ShownHealth.properties,
  beat_url: Type.Optional(Type.String()),
})

/** A check that is added by hand, and tried before. */
export const newCheckEndpoints = [
  ...action({
    body: NewCheck,
    async act({ app, actor, body, now }) {
      const { ops } = app
      const { id, token } = await addCheck({ ...ops, actor }, body, now)
      await ops.checksChanged()
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
      refused: ({ app: { ops } }, refused) => showNew(ops, refused),
    },
  }),

  page({
    path: `${PATH}/new`,
    query: Type.Object({ type: Filter, service: Filter }),
    answer({ app: { ops }, query: { type, service } }) {
      const typed = {
        type: type ?? FIRST_TYPE,
        ...(service !== null && { service }),
        ...(type === 'heartbeat' && { period: USUAL_PERIOD }),
      }
      return showNew(ops, newForm(CheckForm, typed))
    },
  }),

  // Stores nothing: what the form describes is run once.
  form({
    path: `${PATH}/try`,
    body: CheckForm,
    async answer({ app: { ops }, actor, body }) {
      const check = checkToTry({ ...ops, actor }, { service: '', check: checkIn(body) })
      const tried = await ops.tryCheck(check)
      return showNew(ops, newForm(CheckForm, body as Typed), tried)
    },
    refused: ({ app: { ops } }, refused) => showNew(ops, refused),
  }),
]

async function showNew(
  { inventory }: OpsApp['ops'],
  form: FormState,
  tried?: CheckResult,
): Promise<View> {
  const { services } = await inventory.current()
  const fields = fieldsOf(form.typed?.['type'] ?? '', form)
  const names = services.map(({ name }) => name).slice(0, MAX_NAMES)
  return newCheckView({ types: TYPES_BY_HAND, services: names, fields, form, tried })
}
