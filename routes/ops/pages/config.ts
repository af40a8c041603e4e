import {
  CONFIG_FIELDS,
  configForm,
  configPage,
  type ConfigField,
  type ConfigView,
} from '../../../html/ops/config.ts'
import { queryOf } from '../../../kernel/http/context.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { readConfigUpdate, type Config } from '../../../services/ops/config.ts'
import { readForm } from '../../form.ts'
import { badRequest } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { doneReply, pageRoute, refusedReply } from './page.ts'

const FIXED = ['max_tier', 'state_dir', 'results_dir', 'repos_dir'] as const

/** `/config` (decisions.md section 5, Dashboard). */
export function configRoutes({ ops }: OpsRoutes): readonly Route[] {
  const { config } = ops

  function view(changes: Partial<ConfigView>): ConfigView {
    const { current } = config
    const fixed = FIXED.map((name) => [name, String(current[name])] as const)
    return { fields: fieldsOf(current), fixed, refused: null, saved: false, ...changes }
  }

  return [
    pageRoute({
      ...{ method: 'GET', path: '/config' },
      answer: async (context) =>
        htmlReply(configPage(view({ saved: queryOf(context).has('saved') }))),
    }),
    pageRoute({
      ...{ method: 'POST', path: '/config' },
      async answer(context) {
        const form = await readForm(context)
        if ('status' in form) return form
        const changes = readConfigUpdate(valuesIn(form))
        if (typeof changes === 'string') {
          const fields = { ...fieldsOf(config.current), ...typedIn(form) }
          const refused = view({ fields, refused: `${changes}.` })
          return refusedReply(
            context,
            badRequest(changes),
            () => configPage(refused),
            () => configForm(refused),
          )
        }
        await config.update(changes)
        return doneReply(context, '/config?saved=1', () => configForm(view({ saved: true })))
      },
    }),
  ]
}

function fieldsOf(current: Config): Record<ConfigField, string> {
  const { interval, tier1_model, tier2_model, tier3_model, dry_run } = current
  const models = { tier1_model, tier2_model, tier3_model }
  return { interval: String(interval), ...models, dry_run: String(dry_run) }
}

/** The fields that were sent; the others keep their value. */
function typedIn(form: URLSearchParams): Partial<Record<ConfigField, string>> {
  const sent = CONFIG_FIELDS.filter((name) => form.has(name))
  return Object.fromEntries(sent.map((name) => [name, form.get(name) ?? '']))
}

/** The texts of a form as the values of PUT config; what is none stays text, and is refused there. */
function valuesIn(form: URLSearchParams): Readonly<Record<string, unknown>> {
  const { interval, dry_run, ...models } = typedIn(form)
  return {
    ...models,
    ...(interval !== undefined && {
      interval: /^\d+$/.test(interval) ? Number(interval) : interval,
    }),
    ...(dry_run !== undefined && { dry_run: BOOLEANS[dry_run] ?? dry_run }),
  }
}

const BOOLEANS: Readonly<Record<string, boolean | undefined>> = { true: true, false: false }
