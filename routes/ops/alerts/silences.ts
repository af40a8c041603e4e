import * as Type from '../../../kernel/schema.ts'
import { alertQueries } from '../../../db/ops/alerts/alerts.ts'
import { Silence } from '../../../db/ops/alerts/silences.ts'
import { silencesView } from '../../../html/ops/alerts/silences.ts'
import { found } from '../../../kernel/fault.ts'
import { newForm, type FormState } from '../../../kernel/http/view.ts'
import {
  addSilence,
  endSilence,
  linesFor,
  listSilences,
  matchText,
  readSilence,
  SilenceForm,
  SilenceRequest,
} from '../../../services/ops/alerts/silences.ts'
import { action, idOf, page, type OpsApp } from '../kit.ts'
import { listApi } from '../paging.ts'

const PATH = '/silences'
const params = { id: idOf('silence') }

const SilencesQuery = Type.Object({
  /** The alert that the form is filled for. */
  alert: Type.Optional(Type.Integer()),
})

/** Times in which alerts that match start no session (decisions.md section 7, Alerts). */
export const silenceEndpoints = [
  listApi('Silences', {
    summary: 'List what is silenced now, and the windows to come, the next to begin first.',
    row: Silence,
    list: ({ app: { ops }, now }) => listSilences(ops.db, now),
  }),

  ...action({
    body: SilenceRequest,
    act: ({ app: { ops }, actor, body, now }) => addSilence({ ...ops, actor }, body, now),
    api: {
      method: 'POST',
      path: '/api/v1/silences',
      id: 'createSilence',
      tag: 'Silences',
      summary: 'Silence the alerts that match, from now on or later.',
      refuses: [409],
      returns: { status: 201, description: 'The silence', schema: Silence },
    },
    form: {
      path: PATH,
      body: SilenceForm,
      toBody: ({ body, now }) => readSilence(body, now),
      answer: () => ({ location: PATH, done: ['created', 'the silence'] }),
      refused: ({ app, now }, refused) => showSilences(app, now, refused),
    },
  }),

  ...action({
    params,
    act: ({ app: { ops }, actor, params: { id }, now }) => endSilence({ ...ops, actor }, id, now),
    api: {
      method: 'DELETE',
      path: '/api/v1/silences/:id',
      id: 'deleteSilence',
      tag: 'Silences',
      summary: 'End a silence now, or cancel one to come.',
      returns: { description: 'It is over' },
    },
    form: {
      path: `${PATH}/:id/delete`,
      answer: () => ({ location: PATH, done: ['ended', 'the silence'] }),
    },
  }),

  page({
    path: PATH,
    query: SilencesQuery,
    answer: async ({ app, now, query: { alert } }) =>
      showSilences(app, now, alert === undefined ? undefined : await formFor(app, alert)),
  }),
]

async function formFor({ ops }: OpsApp, id: number): Promise<FormState> {
  const alert = found(await alertQueries.findAlert(ops.db, { id }), 'alert')
  return { ...newForm(SilenceForm), typed: { match: linesFor(alert) } }
}

async function showSilences({ ops }: OpsApp, now: Date, form: FormState = newForm(SilenceForm)) {
  const silences = await listSilences(ops.db, now)
  const shown = silences.map((silence) => ({ ...silence, scope: matchText(silence.match) }))
  return silencesView({ silences: shown, form, now })
}
