import Type from 'typebox'
import { configView } from '../../html/ops/config.ts'
import { newForm, type Typed, type View } from '../../kernel/http/view.ts'
import { Config, ConfigForm, ConfigUpdate } from '../../services/ops/config.ts'
import { action, api, page, type OpsApp } from './kit.ts'

/** The configuration (ops.md section 4; decisions.md section 5, Dashboard). */
export const configEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/config',
    id: 'getConfig',
    tag: 'Config',
    summary: 'Get the configuration that runs.',
    returns: { description: 'The configuration', schema: Config },
    answer: ({ app: { ops } }) => ops.config.current,
  }),

  ...action({
    body: ConfigUpdate,
    act: ({ app: { ops }, actor, body }) => ops.config.update(body, actor),
    api: {
      method: 'PUT',
      path: '/api/v1/config',
      id: 'updateConfig',
      tag: 'Config',
      summary: 'Change the given fields; read-only and unknown ones are ignored.',
      returns: { description: 'The configuration as it is now', schema: Config },
    },
    form: {
      path: '/config',
      body: ConfigForm,
      answer: ({ app }) => ({ ...showConfig(app, true), location: '/config?saved=1' }),
      refused: ({ app }, refused) => showConfig(app, false, refused),
    },
  }),

  page({
    path: '/config',
    query: Type.Object({ saved: Type.Optional(Type.String()) }),
    answer: ({ app, query }) => showConfig(app, query.saved !== undefined),
  }),
]

/** A field that was not typed has its present value. */
function showConfig({ ops }: OpsApp, isSaved: boolean, form = newForm(ConfigForm)): View {
  const current = Object.entries(ops.config.current).map(([name, value]) => [name, String(value)])
  const values: Typed = Object.fromEntries(current)
  const typed = { ...values, ...form.typed }
  return configView({ values, form: { ...form, typed }, isSaved })
}
