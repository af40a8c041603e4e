import Type from 'typebox'
import { rejectionQueries } from '../../../../db/hooks/receive/rejections.ts'
import {
  addFragment,
  addPage,
  firstDelivery,
  firstPage,
  type AddStep,
  type FirstDelivery,
} from '../../../../html/hooks/receive/providers/add.ts'
import {
  OPEN_SENDER,
  TOKEN_SENDER,
  type Sender,
} from '../../../../html/hooks/receive/providers/form.ts'
import { notFound } from '../../../../kernel/fault.ts'
import { newForm, type FormState, type View } from '../../../../kernel/http/view.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import {
  AnswerFields,
  readAnswers,
} from '../../../../services/hooks/receive/deliveries/answers.ts'
import {
  createProvider,
  providerStatus,
  readProviders,
  receiverPath,
  type Proof,
} from '../../../../services/hooks/receive/providers.ts'
import { listSenders } from '../../../../services/hooks/receive/schemes/describe.ts'
import { readSchemeRow, SchemeFields } from '../../../../services/hooks/receive/schemes/form.ts'
import { SCHEME_NAMES, schemeNamed } from '../../../../services/hooks/receive/schemes/schemes.ts'
import { form, page, type HooksRoutes } from '../../kit.ts'
import { describeMade, toolsOf } from './view.ts'

/** A signing secret that the sender has made; empty where it is to be made here. */
export const secret = parsed(Type.Optional(Type.String()), 'must be text.', (given) =>
  String(given).trim(),
)

/** What people see of the form. */
const Fields = Type.Object({
  ...SchemeFields.properties,
  ...AnswerFields.properties,
  name: withDefault(Type.String(), ''),
  acknowledge_open: field(withDefault(Type.Boolean(), false), 'must be ticked or not.'),
  secret,
})

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
  /** The page asks for it; without it a provider starts disabled (hooks.md section 3). */
  enabled: field(withDefault(Type.Boolean(), false), 'must be true or false.'),
  ...Fields.properties,
})

/** `/providers/new`, its form, and the wait for the first delivery. */
export const addProviderEndpoints = [
  page({
    path: '/providers/new',
    query: Type.Object({
      name: withDefault(Type.String(), ''),
      scheme: withDefault(Type.String(), ''),
    }),
    async answer({ app, query }) {
      const name = query.name.replace(/^generic:/, '').slice(0, 64)
      const sender = senderNamed(query.scheme)
      if (sender === undefined) return addView(app, { kind: 'senders', senders: SENDERS, name })
      const typed = { name: name === '' ? freeName(app, sender) : name }
      return addView(app, formStep(app, sender, newForm(Fields, typed)))
    },
  }),

  form({
    path: '/providers',
    body: CreateForm,
    async answer({ app, actor, body }) {
      const { enabled } = body
      const proof = proofOf(body)
      const wanted = {
        name: body.name,
        proof,
        // A form sends what it hides, too.
        row: readSchemeRow(proof, proof === 'hmac' ? body : placesIn(proof, body)),
        answers: readAnswers(body),
        secret: proof === 'token' || proof === 'open' ? undefined : body.secret || undefined,
        acknowledgeOpen: body.acknowledge_open,
        enabled,
      }
      const made = await createProvider(toolsOf(app, actor), wanted)
      await app.hooks.registry.refresh()
      const shown = describeMade(app, made, enabled ? 'enabled' : 'disabled')
      const first = await readFirst(app, made.name)
      const view = await addView(app, { kind: 'added', made: shown, first })
      const location = `/providers/${encodeURIComponent(made.name)}/first`
      return {
        ...view,
        ...(made.token === null && { location }),
        done: ['created', made.name],
      }
    },
    refused({ app }, refused) {
      const { trust_mode = 'token', scheme = 'standard' } = refused.typed ?? {}
      const sender = senderNamed(trust_mode === 'signed' ? scheme : trust_mode) ?? TOKEN_SENDER
      return addView(app, formStep(app, sender, { ...refused, schema: Fields }))
    },
  }),

  page({
    path: '/providers/:name/first',
    params: { name: Type.String() },
    async answer({ app, params: { name } }) {
      const position = await app.hooks.stream.newest()
      const first = await readFirst(app, name)
      return {
        page: () => firstPage(first, app.baseUrl() + receiverPath(name), position),
        fragment: () => firstDelivery(first),
      }
    },
  }),
]

/** Those that are known, and any other one. */
const SENDERS: readonly Sender[] = [
  TOKEN_SENDER,
  ...listSenders().map(({ name, title, setup, docs }) => ({ scheme: name, title, setup, docs })),
  OPEN_SENDER,
]

function senderNamed(scheme: string): Sender | undefined {
  return SENDERS.find((sender) => sender.scheme === scheme)
}

/** The sender's own name, with a number where a provider has that. */
function freeName({ hooks: { registry } }: HooksRoutes, { scheme }: Sender): string {
  if (scheme === 'token' || scheme === 'open') return ''
  const isFree = (name: string): boolean => registry.provider(`generic:${name}`) === undefined
  if (isFree(scheme)) return scheme
  let number = 2
  while (!isFree(`${scheme}-${number}`)) number++
  return `${scheme}-${number}`
}

function formStep(app: HooksRoutes, sender: Sender, state: FormState): AddStep {
  const scheme = schemeNamed(sender.scheme)
  return {
    kind: 'form',
    name: state.typed?.['name'] ?? '',
    sender,
    isGiven: scheme?.isGiven === true,
    asks: scheme?.asks ?? {},
    hasSecret: scheme?.secret !== 'none',
    needsKey:
      scheme !== undefined && scheme.secret !== 'none' && app.hooks.secrets.box() === undefined,
    baseUrl: app.baseUrl(),
    form: state,
  }
}

async function addView(app: HooksRoutes, step: AddStep): Promise<View> {
  const position = await app.hooks.stream.newest()
  return { page: () => addPage(step, position), fragment: () => addFragment(step) }
}

/** What has come of a provider that has a URL so far. */
async function readFirst({ hooks }: HooksRoutes, name: string): Promise<FirstDelivery> {
  const { db, clock, secrets } = hooks
  const rows = await readProviders(db, clock.now())
  const row = rows.find((one) => one.name === name && one.family === 'webhook')
  if (row === undefined) {
    throw notFound(`There is no provider "${name}" with a URL; see the list of providers.`)
  }
  const newest = { below: Number.MAX_SAFE_INTEGER, provider: name, limit: 1 }
  const [rejection] = await rejectionQueries.listRejections(db, newest)
  const { enabled } = providerStatus(row, secrets)
  return { name, enabled, last_event_at: row.last_event_at, rejection }
}

function proofOf({ trust_mode, scheme }: Type.Static<typeof CreateForm>): Proof {
  const isToken = schemeNamed(scheme) === undefined
  return trust_mode === 'signed' || (trust_mode === 'token' && isToken) ? scheme : trust_mode
}

/** Of a scheme that is not described here: type and id, and what the scheme asks for. */
function placesIn(proof: Proof, fields: SchemeFields): SchemeFields {
  if (proof === 'token' || proof === 'open') return {}
  const { event_type_header, event_type_json, id_header } = fields
  const asked = Object.keys(schemeNamed(proof)?.asks ?? {})
  return {
    ...Object.fromEntries(Object.entries(fields).filter(([name]) => asked.includes(name))),
    ...(event_type_header !== undefined && { event_type_header }),
    ...(event_type_json !== undefined && { event_type_json }),
    ...(id_header !== undefined && { id_header }),
  }
}
