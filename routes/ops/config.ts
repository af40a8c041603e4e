import * as Type from '../../kernel/schema.ts'
import { assistantQueries } from '../../db/ops/assistants/assistants.ts'
import { configForm, configPage, statusForm, type ShownConfig } from '../../html/ops/config.ts'
import type { Html } from '../../kernel/html.ts'
import { newForm, type Typed, type View } from '../../kernel/http/view.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import {
  AssistantForm,
  MAX_ASSISTANTS,
} from '../../services/ops/assistants/assistants/assistants.ts'
import { Config, ConfigForm, ConfigUpdate } from '../../services/ops/config.ts'
import { listHealth } from '../../services/ops/watch/checks/health.ts'
import { action, api, form, page, type OpsApp } from './kit.ts'

/** As many as a status page can show; a form without a box names none. */
const StatusForm = Type.Object({
  services: field(
    withDefault(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 500 }), []),
    'must be up to 500 names of services.',
  ),
})

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
      // By decisions.md section 5, a read-only field that differs is ignored.
      replaces: {
        current: ({ app: { ops } }) => ops.config.current,
        mayDiffer: ['max_tier', 'state_dir', 'results_dir', 'repos_dir'],
      },
    },
    form: {
      path: '/config',
      body: ConfigForm,
      answer: async ({ app }) => ({ ...(await showConfig(app, configForm)), done: ['saved'] }),
      refused: ({ app }, refused) => showConfig(app, configForm, { form: refused }),
    },
  }),

  form({
    path: '/config/status',
    body: StatusForm,
    async answer({ app, actor, body }) {
      await app.ops.config.changeStatusServices(body.services, actor)
      return { ...(await showConfig(app, statusForm)), done: ['saved', 'the status page'] }
    },
  }),

  page({
    path: '/config',
    answer: ({ app }) => showConfig(app, configForm),
  }),
]

/** The whole page, and the part of it that shows what a form has changed. */
export async function showConfig(
  { ops, baseUrl }: OpsApp,
  part: (shown: ShownConfig) => Html,
  changes: Partial<ShownConfig> = {},
): Promise<View> {
  const current = Object.entries(ops.config.current).map(([name, value]) => [name, String(value)])
  const values: Typed = Object.fromEntries(current)
  const { form = newForm(ConfigForm) } = changes
  const shown: ShownConfig = {
    values,
    baseUrl: baseUrl(),
    newAssistant: newForm(AssistantForm),
    ...changes,
    services: await namesOf(ops),
    shownServices: shownIn(ops),
    assistants: await assistantQueries.listAssistants(ops.db, { limit: MAX_ASSISTANTS }),
    // A field that was not typed has its present value.
    form: { ...form, typed: { ...values, ...form.typed } },
  }
  return {
    page: () => configPage(shown),
    fragment: () => part(shown),
    ...(shown.made === undefined && { location: '/config' }),
  }
}

function shownIn({ config }: OpsApp['ops']): readonly string[] {
  return config.statusServices() ?? []
}

/** Services that have checks, and those that are shown: a setting may name others. */
async function namesOf(ops: OpsApp['ops']): Promise<readonly string[]> {
  const checks = await listHealth(ops.db, ops.clock.now())
  return [...new Set([...checks.map(({ service }) => service), ...shownIn(ops)])].toSorted()
}
