import * as Type from '../../../kernel/schema.ts'
import { Mute } from '../../../db/ops/watch/mutes.ts'
import { mutesView } from '../../../html/ops/watch/mutes.ts'
import { newForm, type FormState } from '../../../kernel/http/view.ts'
import { validate } from '../../../kernel/validate.ts'
import {
  addMute,
  endMute,
  listMutes,
  MuteRequest,
  scopeText,
} from '../../../services/ops/watch/mutes/mutes.ts'
import { action, idOf, page, type OpsApp } from '../kit.ts'
import { listApi } from '../paging.ts'

const PATH = '/mutes'
const params = { id: idOf('mute') }
const Text = Type.Optional(Type.String({ maxLength: 500 }))

/** The form, in which a field may be left empty. */
export const MuteForm = Type.Object({
  service: Text,
  check: Text,
  for: Text,
  starts_at: Text,
  ends_at: Text,
  every: Text,
  tz: Text,
  reason: Text,
})

/** Times in which failures are not told (decisions.md section 7, Checks). */
export const muteEndpoints = [
  listApi('Mutes', {
    summary: 'List what is muted now, and the windows to come, the next to begin first.',
    row: Mute,
    list: ({ app: { ops }, now }) => listMutes(ops.db, now),
  }),

  ...action({
    body: MuteRequest,
    act: ({ app: { ops }, actor, body, now }) => addMute({ ...ops, actor }, body, now),
    api: {
      method: 'POST',
      path: '/api/v1/mutes',
      id: 'createMute',
      tag: 'Mutes',
      summary: 'Mute a check, a service or everything, from now on, later or every week.',
      refuses: [404, 409],
      returns: { status: 201, description: 'The mute', schema: Mute },
    },
    form: {
      path: PATH,
      body: MuteForm,
      toBody: ({ body }) => readMute(body),
      answer: () => ({ location: PATH, done: ['created', 'the mute'] }),
      refused: ({ app, now }, refused) => showMutes(app, now, refused),
    },
  }),

  ...action({
    params,
    act: ({ app: { ops }, actor, params: { id }, now }) => endMute({ ...ops, actor }, id, now),
    api: {
      method: 'DELETE',
      path: '/api/v1/mutes/:id',
      id: 'deleteMute',
      tag: 'Mutes',
      summary: 'End a mute now, or cancel one to come or one that comes back.',
      returns: { description: 'It is over' },
    },
    form: {
      path: `${PATH}/:id/delete`,
      answer: () => ({ location: PATH, done: ['ended', 'the mute'] }),
    },
  }),

  page({ path: PATH, answer: ({ app, now }) => showMutes(app, now) }),
]

/** Reads what people typed; a field that is empty is left out. */
export function readMute(texts: Readonly<Record<string, string | undefined>>): MuteRequest {
  const filled = Object.entries(texts).filter(([, text = '']) => text.trim() !== '')
  return validate(MuteRequest, Object.fromEntries(filled))
}

async function showMutes({ ops }: OpsApp, now: Date, form: FormState = newForm(MuteForm)) {
  const mutes = await listMutes(ops.db, now)
  const shown = mutes.map((mute) => ({ ...mute, scope: scopeText(mute) }))
  return mutesView({ mutes: shown, form, now })
}
