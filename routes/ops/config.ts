import Type from 'typebox'
import { configForm, configPage, type ConfigView } from '../../html/ops/config.ts'
import { anyone, newForm } from '../../kernel/http/endpoint.ts'
import { Config, ConfigForm, ConfigUpdate } from '../../services/ops/config.ts'
import { api, form, page, type OpsApp } from './endpoint.ts'

/** The configuration (ops.md section 4; decisions.md section 5, Dashboard). */
export const configEndpoints = [
  api({
    ...{ method: 'GET', path: '/api/v1/config', access: anyone },
    id: 'getConfig',
    tag: 'Config',
    summary: 'Get the configuration that runs.',
    returns: { description: 'The configuration', schema: Config },
    answer: ({ app: { ops } }) => ops.config.current,
  }),

  api({
    ...{ method: 'PUT', path: '/api/v1/config', access: anyone },
    id: 'updateConfig',
    tag: 'Config',
    summary: 'Change the given fields; read-only and unknown ones are ignored.',
    body: ConfigUpdate,
    returns: { description: 'The configuration as it is now', schema: Config },
    answer: ({ app: { ops }, body }) => ops.config.update(body),
  }),

  page({
    path: '/config',
    access: anyone,
    query: Type.Object({ saved: Type.Optional(Type.String()) }),
    answer({ app, query }) {
      const view = viewOf(app, { isSaved: query.saved !== undefined })
      return { page: () => configPage(view), fragment: () => configForm(view) }
    },
  }),

  form({
    path: '/config',
    access: anyone,
    body: ConfigForm,
    async answer({ app, body }) {
      await app.ops.config.update(body)
      return {
        location: '/config?saved=1',
        fragment: () => configForm(viewOf(app, { isSaved: true })),
      }
    },
    refused({ app }, refused) {
      const { form: current } = viewOf(app)
      const typed = { ...current.typed, ...refused.typed }
      const view = viewOf(app, { form: { ...refused, typed } })
      return { page: () => configPage(view), fragment: () => configForm(view) }
    },
  }),
]

function viewOf({ ops }: OpsApp, state: Partial<ConfigView> = {}): ConfigView {
  const current = Object.entries(ops.config.current).map(([name, value]) => [name, String(value)])
  const values: Readonly<Record<string, string>> = Object.fromEntries(current)
  return { values, form: newForm(ConfigForm, values), isSaved: false, ...state }
}
