import Type from 'typebox'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { providerCard, type ProviderCard } from '../../html/hooks/provider-card.ts'
import { providersFragment, providersPage, type ProvidersView } from '../../html/hooks/providers.ts'
import { newForm } from '../../kernel/http/endpoint.ts'
import type { View } from '../../kernel/http/view.ts'
import { formatDuration } from '../../kernel/time.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import type { ActiveProvider } from '../../db/hooks/providers.ts'
import { AlarmForm, alarmsOf } from '../../services/hooks/alarms.ts'
import {
  createProvider,
  enableProvider,
  MAX_OVERLAP_S,
  providerStatus,
  readProviders,
  receiverPath,
  removeProvider,
  rotateSecret,
  setAlarms,
  type MadeProvider,
  type ProviderTools,
} from '../../services/hooks/providers.ts'
import {
  isSignedProvider,
  secretVariable,
  type SigningSecrets,
} from '../../services/hooks/secrets.ts'
import { anyone } from '../../kernel/http/endpoint.ts'
import { form, page, type HooksRoutes } from './endpoint.ts'

const params = { name: Type.String() }

/** A signing secret that the sender has made; an empty field gives none. */
const secret = parsed(Type.Optional(Type.String()), 'must be text.', (given) =>
  String(given).trim(),
)

const CreateForm = Type.Object({
  trust_mode: field(
    withDefault(
      Type.Union([Type.Literal('token'), Type.Literal('signed'), Type.Literal('open')]),
      'token',
    ),
    'must be token, signed or open.',
  ),
  name: withDefault(Type.String(), ''),
  acknowledge_open: field(withDefault(Type.Boolean(), false), 'must be ticked or not.'),
  secret,
})

const EnableForm = Type.Object({
  enabled: parsed(Type.Unsafe<boolean>({ type: 'string' }), 'must be true or false.', (given) =>
    given === 'true' || given === 'false' ? given === 'true' : undefined,
  ),
})

const RotateForm = Type.Object({
  overlap: field(
    Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_OVERLAP_S })),
    `must be a whole number of seconds from 0 to ${MAX_OVERLAP_S}.`,
  ),
  secret,
})

/** `/providers` and its forms (hooks.md section 4, decisions.md section 3). */
export const providerEndpoints = [
  page({
    path: '/providers',
    access: anyone,
    answer: ({ app }) => providersView(app),
  }),

  form({
    path: '/providers',
    access: anyone,
    body: CreateForm,
    async answer({ app, body }) {
      const { name, trust_mode, acknowledge_open: acknowledgeOpen } = body
      const given = trust_mode === 'signed' ? secretOf(body) : undefined
      const wanted = { name, trust_mode, secret: given, acknowledgeOpen, enabled: false }
      return madeView(app, await createProvider(toolsOf(app), wanted), false)
    },
    refused: ({ app }, refused) => providersView(app, { form: refused }),
  }),

  form({
    path: '/providers/:name/enabled',
    access: anyone,
    params,
    body: EnableForm,
    async answer({ app, params: { name }, body: { enabled } }) {
      await enableProvider(toolsOf(app), name, enabled)
      return cardView(app, name, false)
    },
  }),

  form({
    path: '/providers/:name/alarm',
    access: anyone,
    params,
    body: AlarmForm,
    async answer({ app, params: { name }, body }) {
      await setAlarms(toolsOf(app), name, body)
      return cardView(app, name, true)
    },
  }),

  form({
    path: '/providers/:name/rotate',
    access: anyone,
    params,
    body: RotateForm,
    async answer({ app, params: { name }, body }) {
      const overlap = body.overlap ?? app.overlapSeconds()
      return madeView(app, await rotateSecret(toolsOf(app), name, overlap, secretOf(body)), true)
    },
  }),

  form({
    path: '/providers/:name/remove',
    access: anyone,
    params,
    async answer({ app, params: { name } }) {
      await removeProvider(toolsOf(app), name)
      await app.hooks.registry.refresh()
      return providersView(app)
    },
  }),
]

function toolsOf({ hooks }: HooksRoutes): ProviderTools {
  return { ...hooks, now: () => hooks.clock.now() }
}

function secretOf(body: { readonly secret?: string }): string | undefined {
  return body.secret === '' ? undefined : body.secret
}

async function providersView(
  app: HooksRoutes,
  changes: Partial<ProvidersView> = {},
): Promise<View> {
  const view: ProvidersView = {
    baseUrl: app.baseUrl(),
    canSign: app.hooks.secrets.box() !== undefined,
    form: newForm(CreateForm),
    ...changes,
    cards: await readCards(app),
  }
  return { page: () => providersPage(view), fragment: () => providersFragment(view) }
}

async function madeView(app: HooksRoutes, made: MadeProvider, rotated: boolean): Promise<View> {
  await app.hooks.registry.refresh()
  const url = app.baseUrl() + receiverPath(made.name)
  return providersView(app, { made: { ...made, url, rotated } })
}

/** The card of a provider that was changed, and the page around it. */
async function cardView(app: HooksRoutes, name: string, saved: boolean): Promise<View> {
  await app.hooks.registry.refresh()
  const cards = await readCards(app)
  const view = await providersView(app)
  const card = cards.find(({ status }) => status.name === name)
  if (card === undefined) return view
  return { ...view, fragment: () => providerCard({ ...card, alarm: { ...card.alarm, saved } }) }
}

/** Every provider as its card shows it. */
async function readCards(app: HooksRoutes): Promise<readonly ProviderCard[]> {
  const { db, clock } = app.hooks
  const now = clock.now()
  const [providers, counts] = await Promise.all([
    readProviders(db, now),
    rejectionQueries.listRejectionCounts(db, {}),
  ])
  return providers.map((provider) => ({
    ...cardOf(provider, now, app),
    rejections: counts.find((count) => count.provider === provider.name) ?? null,
  }))
}

function cardOf(
  provider: ActiveProvider,
  now: Date,
  { hooks: { secrets }, baseUrl, overlapSeconds }: HooksRoutes,
): Omit<ProviderCard, 'rejections'> {
  const { name, recent_count, last_event_at, previous_until } = provider
  const { expected_interval_s: interval, rejection_burst: burst } = provider
  const status = providerStatus(provider, secrets)
  const firing = status.enabled ? alarmsOf(provider, now).filter(({ fires }) => fires) : []
  return {
    status,
    recent_count,
    last_event_at,
    url: status.path === null ? null : baseUrl() + status.path,
    variable: isSignedProvider(name) ? secretVariable(name) : null,
    lastSecret: lastSecretOf(provider, secrets),
    previousUntil: previous_until !== null && now < previous_until ? previous_until : null,
    overlaps: overlaps(overlapSeconds()),
    alarm: {
      interval: interval === null ? null : formatDuration(interval),
      burst,
      firing: firing.map(({ kind }) => kind),
      saved: false,
    },
  }
}

/**
 * Which secret was used last. Of configured secrets "current" means another one after each change,
 * and nothing records the time of a change: a use before this process knew them is left out.
 */
function lastSecretOf(
  { name, last_secret: secret, last_secret_at: at }: ActiveProvider,
  secrets: SigningSecrets,
): ProviderCard['lastSecret'] {
  if (secret === null || at === null) return null
  const since = isSignedProvider(name) ? secrets.of(name)?.since : undefined
  return since !== undefined && at < since ? null : { secret, at }
}

/** The usual overlaps in seconds, and the configured one. */
function overlaps(configured: number): ProviderCard['overlaps'] {
  const offered = [...new Set([0, 3_600, 86_400, 7 * 86_400, configured])].toSorted((a, b) => a - b)
  return offered.map((seconds) => {
    return { seconds, text: formatDuration(seconds), chosen: seconds === configured }
  })
}
