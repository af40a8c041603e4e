import * as Type from '../../../../kernel/schema.ts'
import { rowOf, type RowKind } from '../../../../html/ops/watch/checks.ts'
import { notFound } from '../../../../kernel/fault.ts'
import type { Outcome } from '../../../../kernel/http/outcome.ts'
import type { Done, View } from '../../../../kernel/http/view.ts'
import { runNow } from '../../../../services/ops/watch/checks/asked.ts'
import {
  findHealth,
  showHealth,
  ShownHealth,
} from '../../../../services/ops/watch/checks/health.ts'
import { barOf, readDays } from '../../../../services/ops/watch/checks/history.ts'
import { addMute, endMute } from '../../../../services/ops/watch/mutes/mutes.ts'
import { showCheck } from '../../check.ts'
import { action, form, idOf, type OpsApp } from '../../kit.ts'
import { MuteForm, readMute } from '../mutes.ts'

const PATH = '/checks'
const params = { id: idOf('check') }
/** Where the button stands: in a row of a list, which is answered alone, or on the check's page. */
const Place = { row: Type.Optional(Type.Enum(['short', 'days'])) }
const RowForm = Type.Object(Place)
const CheckMuteForm = Type.Object({ ...MuteForm.properties, ...Place })

/** What people do with a check in a list, and on its page. */
export const checkActEndpoints = [
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
      body: RowForm,
      answer: ({ app, params: { id }, body: { row } }, { name }) =>
        shown(app, id, row, ['checked', name]),
    },
  }),

  form({
    path: `${PATH}/:id/mute`,
    params,
    body: CheckMuteForm,
    async answer({ app, actor, params: { id }, body, now }) {
      const { ops } = app
      const { row, ...typed } = body
      const { service, name } = await findHealth(ops.db, id, now)
      const request = readMute({ ...typed, service, check: name })
      await addMute({ ...ops, actor }, request, now)
      return shown(app, id, row, ['muted', name])
    },
    refused({ app, params: { id }, now }, mute) {
      if (mute.typed['row'] !== undefined) throw mute.fault
      return showCheck(app, id, now, { mute })
    },
  }),

  form({
    path: `${PATH}/:id/unmute`,
    params,
    body: RowForm,
    async answer({ app, actor, params: { id }, body: { row }, now }) {
      const { ops } = app
      const { name, mute } = await findHealth(ops.db, id, now)
      if (mute === undefined || mute.check_name === null) {
        throw notFound(`${name} is not muted by itself`)
      }
      await endMute({ ...ops, actor }, mute.id, now)
      return shown(app, id, row, ['unmuted', name])
    },
  }),
]

/** After a change: the row where the button stood in a row, else the check's page. */
async function shown(
  app: OpsApp,
  id: number,
  row: RowKind | undefined,
  done: Outcome,
): Promise<View | Done> {
  const { db, clock } = app.ops
  const now = clock.now()
  const isMutedNow = done[0] === 'muted'
  if (row === undefined) {
    return { ...(await showCheck(app, id, now, { isMutedNow })), location: `${PATH}/${id}`, done }
  }
  const check = await findHealth(db, id, now)
  if (row === 'short')
    return { location: PATH, fragment: () => rowOf(check, { isMutedNow }), done }
  const bar = barOf((await readDays(db, [id], now)).get(id) ?? [], now)
  const location = `${PATH}?service=${encodeURIComponent(check.service.toWellFormed())}`
  return { location, fragment: () => rowOf(check, { bar, isMutedNow }), done }
}
