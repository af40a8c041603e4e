import * as Type from '../../../../kernel/schema.ts'
import {
  providerCard,
  providerContent,
  providerToggle,
} from '../../../../html/hooks/receive/providers/card.ts'
import type { ProviderCard } from '../../../../html/hooks/receive/providers/shown.ts'
import {
  providersFragment,
  providersPage,
  type ProvidersView,
} from '../../../../html/hooks/receive/providers/providers.ts'
import type { Html } from '../../../../kernel/html.ts'
import type { View } from '../../../../kernel/http/view.ts'
import { INSTANT_FORM, readInstant } from '../../../../kernel/time.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import { AlarmForm } from '../../../../services/hooks/receive/alarms.ts'
import {
  AnswerFields,
  readAnswers,
} from '../../../../services/hooks/receive/deliveries/answers.ts'
import {
  enableProvider,
  MAX_OVERLAP_S,
  ProviderStatus,
  providerStatus,
  readProviders,
  removeProvider,
  rotateSecret,
  setAlarms,
  setAnswers,
} from '../../../../services/hooks/receive/providers/providers.ts'
import { reader } from '../../access.ts'
import { api, form, page, Switch, type HooksRoutes } from '../../kit.ts'
import { secret } from './add.ts'
import { describeMade, readCards, toolsOf } from './view.ts'

const params = { name: Type.String() }

const RotateForm = Type.Object({
  overlap: field(
    Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_OVERLAP_S })),
    `must be a whole number of seconds from 0 to ${MAX_OVERLAP_S}.`,
  ),
  secret,
  /** The last rotation that the page showed, empty for none; another one since is a conflict. */
  rotated_at: parsed(Type.Optional(Type.String()), `must be ${INSTANT_FORM}, or empty.`, (given) =>
    given === '' ? '' : readInstant(given)?.toISOString(),
  ),
})

/** `/providers` and its forms (hooks.md section 4, decisions.md section 3). */
export const providerEndpoints = [
  page({
    path: '/providers',
    query: Type.Object({ open: withDefault(Type.String(), '') }),
    async answer({ app, query }) {
      if (query.open === '') return providersView(app)
      return cardView(app, query.open, providerContent)
    },
  }),

  form({
    path: '/providers/:name/enabled',
    params,
    body: Switch,
    async answer({ app, actor, params: { name }, body: { enabled } }) {
      await enableProvider(toolsOf(app, actor), name, enabled)
      await app.hooks.registry.refresh()
      const view = await cardView(app, name, providerToggle)
      return { ...view, done: [enabled ? 'enabled' : 'disabled', name] }
    },
  }),

  form({
    path: '/providers/:name/alarm',
    params,
    body: AlarmForm,
    async answer({ app, actor, params: { name }, body }) {
      await setAlarms(toolsOf(app, actor), name, body)
      await app.hooks.registry.refresh()
      const view = await cardView(app, name, (card) => providerCard({ ...card, alarms: {} }))
      return { ...view, done: ['saved'] }
    },
    refused: ({ app, params: { name } }, alarms) =>
      cardView(app, name, (card) => providerCard({ ...card, alarms })),
  }),

  form({
    path: '/providers/:name/answers',
    params,
    body: AnswerFields,
    async answer({ app, actor, params: { name }, body }) {
      // A browser sends nothing of boxes that are not ticked.
      const { methods = [], ...fields } = body
      await setAnswers(toolsOf(app, actor), name, readAnswers({ methods, ...fields }))
      await app.hooks.registry.refresh()
      const view = await cardView(app, name, (card) => providerCard({ ...card, answers: {} }))
      return { ...view, done: ['saved'] }
    },
    refused: ({ app, params: { name } }, answers) =>
      cardView(app, name, (card) => providerCard({ ...card, answers })),
  }),

  form({
    path: '/providers/:name/rotate',
    params,
    body: RotateForm,
    async answer({ app, actor, params: { name }, body }) {
      const rotation = {
        overlapSeconds: body.overlap ?? app.overlapSeconds(),
        secret: body.secret || undefined,
        seen: body.rotated_at,
      }
      const made = await rotateSecret(toolsOf(app, actor), name, rotation)
      await app.hooks.registry.refresh()
      const view = await providersView(app, { made: describeMade(app, made, 'rotated') })
      return { ...view, done: ['rotated', name] }
    },
    async refused({ app, params: { name } }, rotation) {
      const cards = await readCards(app)
      return providersView(app, {
        cards: cards.map((one) => (one.name === name ? { ...one, open: true, rotation } : one)),
      })
    },
  }),

  form({
    path: '/providers/:name/remove',
    params,
    async answer({ app, actor, params: { name } }) {
      await removeProvider(toolsOf(app, actor), name)
      await app.hooks.registry.refresh()
      return { ...(await providersView(app)), done: ['removed', name] }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/providers',
    access: reader,
    id: 'listProviders',
    tag: 'Providers',
    summary: 'List who may deliver, and whether they can.',
    returns: {
      description: 'All providers, without their secrets',
      schema: Type.Object({ providers: Type.Array(ProviderStatus) }),
    },
    // Two Authorization headers.
    refuses: [400],
    async answer({ app: { hooks }, now }) {
      const rows = await readProviders(hooks.db, now)
      return { providers: rows.map((row) => providerStatus(row, hooks.secrets)) }
    },
  }),
]

async function providersView(
  app: HooksRoutes,
  changes: Partial<ProvidersView> = {},
): Promise<View> {
  const view: ProvidersView = {
    cards: changes.cards ?? (await readCards(app)),
    ...changes,
  }
  return {
    page: () => providersPage(view),
    fragment: () => providersFragment(view),
    ...((view.made?.token ?? null) === null && { location: '/providers' }),
  }
}

/** What shows a provider, and the page around it, on which its row is open. */
async function cardView(
  app: HooksRoutes,
  name: string,
  show: (card: ProviderCard) => Html,
): Promise<View> {
  const all = await readCards(app)
  const cards = all.map((one) => (one.name === name ? { ...one, open: true } : one))
  const card = cards.find(({ open }) => open)
  const view = await providersView(app, { cards })
  if (card === undefined) return view
  const location = `/providers?open=${encodeURIComponent(name)}`
  return { ...view, fragment: () => show(card), location }
}
