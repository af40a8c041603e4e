import Type from 'typebox'
import { recoveryQueries } from '../../db/hooks/recoveries.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import {
  providerCard,
  providerContent,
  providerToggle,
  type ProviderCard,
} from '../../html/hooks/providers/card.ts'
import { providersFragment, providersPage } from '../../html/hooks/providers/providers.ts'
import type { ProvidersView } from '../../html/hooks/providers/providers.ts'
import type { Option } from '../../html/form.ts'
import type { Html } from '../../kernel/html.ts'
import { newForm, type View } from '../../kernel/http/view.ts'
import type { Actor } from '../../kernel/actor.ts'
import { formatDuration, INSTANT_FORM, readInstant } from '../../kernel/time.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import type { ActiveProvider } from '../../db/hooks/providers.ts'
import { AlarmForm, alarmsOf } from '../../services/hooks/alarms/alarms.ts'
import { AnswerFields, readAnswers } from '../../services/hooks/deliveries/answers.ts'
import {
  createProvider,
  enableProvider,
  MAX_OVERLAP_S,
  ProviderStatus,
  providerStatus,
  readProviders,
  receiverPath,
  removeProvider,
  rotateSecret,
  setAlarms,
  setAnswers,
  type MadeProvider,
  type Proof,
  type ProviderTools,
} from '../../services/hooks/providers.ts'
import { recoveriesOf } from '../../services/hooks/recoveries/recoveries.ts'
import { readSchemeRow, SchemeFields } from '../../services/hooks/schemes/form.ts'
import { listSenders, schemeNote, senderInfo } from '../../services/hooks/schemes/describe.ts'
import {
  presetNamed,
  SCHEME_NAMES,
  schemeNamed,
  schemeOf,
} from '../../services/hooks/schemes/schemes.ts'
import { isSignable } from '../../services/hooks/schemes/signing.ts'
import {
  isSignedProvider,
  secretVariable,
  type SigningSecrets,
} from '../../services/hooks/schemes/secrets.ts'
import { reader } from './access.ts'
import { api, form, page, Switch, type HooksRoutes } from './kit.ts'

const params = { name: Type.String() }

/** A signing secret that the sender has made; empty where it is to be made here. */
const secret = parsed(Type.Optional(Type.String()), 'must be text.', (given) =>
  String(given).trim(),
)

const CreateForm = Type.Object({
  trust_mode: field(
    withDefault(Type.Enum(['token', 'signed', 'open']), 'token'),
    'must be token, signed or open.',
  ),
  /** Of a sender that signs, or GitLab. */
  scheme: field(
    withDefault(Type.Enum([...SCHEME_NAMES]), 'standard'),
    'must be the name of a sender, such as github, or hmac; see /providers/senders.',
  ),
  ...SchemeFields.properties,
  ...AnswerFields.properties,
  name: withDefault(Type.String(), ''),
  acknowledge_open: field(withDefault(Type.Boolean(), false), 'must be ticked or not.'),
  secret,
})

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
    path: '/providers',
    body: CreateForm,
    async answer({ app, actor, body }) {
      const proof = proofOf(body)
      const wanted = {
        name: body.name,
        proof,
        // A form sends what it hides, too.
        row: readSchemeRow(proof, proof === 'hmac' ? body : placesIn(proof, body)),
        answers: readAnswers(body),
        secret: proof === 'token' || proof === 'open' ? undefined : body.secret || undefined,
        acknowledgeOpen: body.acknowledge_open,
        enabled: false,
      }
      const made = await createProvider(toolsOf(app, actor), wanted)
      return { ...(await madeView(app, made, false)), done: ['created', made.name] }
    },
    refused: ({ app }, refused) => providersView(app, { form: refused }),
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
      return { ...(await madeView(app, made, true)), done: ['rotated', name] }
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

function proofOf({ trust_mode, scheme }: Type.Static<typeof CreateForm>): Proof {
  const isToken = schemeNamed(scheme) === undefined
  return trust_mode === 'signed' || (trust_mode === 'token' && isToken) ? scheme : trust_mode
}

/** Of a scheme that is not described here, type and id alone. */
function placesIn(proof: Proof, fields: SchemeFields): SchemeFields {
  if (proof === 'token' || proof === 'open') return {}
  const { event_type_header, event_type_json, id_header } = fields
  return {
    ...(event_type_header !== undefined && { event_type_header }),
    ...(event_type_json !== undefined && { event_type_json }),
    ...(id_header !== undefined && { id_header }),
  }
}

function toolsOf({ hooks }: HooksRoutes, actor: Actor): ProviderTools {
  return { ...hooks, actor, now: () => hooks.clock.now() }
}

async function providersView(
  app: HooksRoutes,
  changes: Partial<ProvidersView> = {},
): Promise<View> {
  const view: ProvidersView = {
    baseUrl: app.baseUrl(),
    canSign: app.hooks.secrets.box() !== undefined,
    senders: listSenders(),
    form: newForm(CreateForm),
    cards: changes.cards ?? (await readCards(app)),
    ...changes,
  }
  return {
    page: () => providersPage(view),
    fragment: () => providersFragment(view),
    ...((view.made?.token ?? null) === null && { location: '/providers' }),
  }
}

async function madeView(app: HooksRoutes, made: MadeProvider, rotated: boolean) {
  await app.hooks.registry.refresh()
  const url = app.baseUrl() + receiverPath(made.name)
  const scheme = schemeOf(made)
  const signing = scheme && isSignable(scheme) ? scheme : undefined
  const preset = presetNamed(made.scheme)
  const sender = preset && made.scheme !== 'hmac' ? senderInfo(preset) : undefined
  return providersView(app, { made: { ...made, url, rotated, signing, sender } })
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

/** Every provider as its row shows it. */
async function readCards(app: HooksRoutes): Promise<readonly ProviderCard[]> {
  const { db, clock, secrets } = app.hooks
  const now = clock.now()
  const [providers, counts, recoveries] = await Promise.all([
    readProviders(db, now),
    rejectionQueries.listRejectionCounts(db, {}),
    recoveryQueries.listRecoveries(db, {}),
  ])
  const overlap = app.overlapSeconds()
  const times = new Set([0, 3_600, 86_400, 7 * 86_400, overlap])
  const overlaps = [...times].toSorted((a, b) => a - b).map(overlapOption)
  return providers.map((provider) => {
    const { name, previous_until: until, expected_interval_s: interval } = provider
    const status = providerStatus(provider, secrets)
    const firing = alarmsOf(provider, now).filter(({ fires }) => fires && status.enabled)
    return {
      ...provider,
      ...status,
      methods: provider.methods,
      rejections: counts.find((count) => count.provider === name),
      recoveries: recoveriesOf(recoveries, provider),
      url: status.path === null ? null : app.baseUrl() + status.path,
      isGiven: schemeOf(provider)?.isGiven === true,
      schemeNote: schemeNote(presetNamed(provider.scheme)),
      variable: isSignedProvider(name) ? secretVariable(name) : null,
      lastSecret: lastSecretOf(provider, secrets),
      previous_until: until !== null && now < until ? until : null,
      rotatedAt: provider.rotated_at?.toISOString() ?? '',
      overlaps,
      overlap: String(overlap),
      interval: interval === null ? null : formatDuration(interval),
      firing: firing.map(({ kind }) => kind),
    }
  })
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

function overlapOption(seconds: number): Option {
  return [String(seconds), seconds === 0 ? 'no longer' : `for ${formatDuration(seconds)} more`]
}
