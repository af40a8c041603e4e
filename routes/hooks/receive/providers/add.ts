import * as Type from '../../../../kernel/schema.ts'
import {
  addFragment,
  addPage,
  type AddStep,
} from '../../../../html/hooks/receive/providers/add.ts'
import {
  OPEN_SENDER,
  TOKEN_SENDER,
  type KeptProvider,
  type Sender,
} from '../../../../html/hooks/receive/providers/form.ts'
import type { Made } from '../../../../html/hooks/receive/providers/providers.ts'
import { newForm, type FormState, type View } from '../../../../kernel/http/view.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import {
  AnswerFields,
  readAnswers,
} from '../../../../services/hooks/receive/deliveries/answers.ts'
import {
  createProvider,
  findOpen,
  receiverPath,
  verifyProvider,
  type Proof,
} from '../../../../services/hooks/receive/providers/providers.ts'
import {
  senderGroups,
  type SenderInfo,
} from '../../../../services/hooks/receive/schemes/describe.ts'
import { readSchemeRow, SchemeFields } from '../../../../services/hooks/receive/schemes/form.ts'
import { SCHEME_NAMES, schemeNamed } from '../../../../services/hooks/receive/schemes/schemes.ts'
import { form, page, type HooksRoutes } from '../../kit.ts'
import { firstPath, readFirst } from '../../first-delivery.ts'
import { describeMade, toolsOf } from './view.ts'

/** A signing secret that the sender has made; empty where it is to be made here. */
export const secret = parsed(Type.Optional(Type.String()), 'must be text.', (given) =>
  String(given).trim(),
)

const params = { name: Type.String() }

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

/** How an open provider is to verify what it receives. */
const VerifyForm = Type.Object({
  trust_mode: field(
    withDefault(Type.Enum(['token', 'signed']), 'signed'),
    'must be token or signed.',
  ),
  scheme: CreateForm.properties.scheme,
  ...SchemeFields.properties,
  secret,
})

/** `/providers/new`, `/providers/NAME/verify`, and their forms. */
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
      if (sender === undefined) return addView(app, { kind: 'senders', ...GROUPS, name })
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
        row: rowOf(proof, body),
        answers: readAnswers(body),
        secret: givenSecret(proof, body),
        acknowledgeOpen: body.acknowledge_open,
        enabled,
      }
      const made = await createProvider(toolsOf(app, actor), wanted)
      await app.hooks.registry.refresh()
      const shown = describeMade(app, made, enabled ? 'enabled' : 'disabled')
      const view = await addedView(app, shown)
      return { ...view, done: ['created', made.name] }
    },
    refused({ app }, refused) {
      const { trust_mode = 'token', scheme = 'standard' } = refused.typed ?? {}
      const sender = senderNamed(trust_mode === 'signed' ? scheme : trust_mode) ?? TOKEN_SENDER
      return addView(app, formStep(app, sender, { ...refused, schema: Fields }))
    },
  }),

  page({
    path: '/providers/:name/verify',
    params,
    query: Type.Object({ scheme: withDefault(Type.String(), '') }),
    async answer({ app, params, query }) {
      const kept = await findKept(app, params.name)
      const sender = checkedSender(query.scheme)
      if (sender === undefined) {
        const common = GROUPS.common.filter((one) => one !== OPEN_SENDER)
        return addView(app, { kind: 'senders', ...GROUPS, common, name: '', kept })
      }
      return addView(app, formStep(app, sender, newForm(VerifyForm), kept))
    },
  }),

  form({
    path: '/providers/:name/verify',
    params,
    body: VerifyForm,
    async answer({ app, actor, params: { name }, body }) {
      const proof = proofOf(body)
      const wanted = { proof, row: rowOf(proof, body), secret: givenSecret(proof, body) }
      const made = await verifyProvider(toolsOf(app, actor), name, wanted)
      await app.hooks.registry.refresh()
      const view = await addedView(app, describeMade(app, made, 'verified'))
      return { ...view, done: ['saved', name] }
    },
    async refused({ app, params: { name } }, refused) {
      const { trust_mode = 'signed', scheme = '' } = refused.typed ?? {}
      const sender = checkedSender(trust_mode === 'signed' ? scheme : trust_mode) ?? TOKEN_SENDER
      const kept = await findKept(app, name)
      return addView(app, formStep(app, sender, { ...refused, schema: VerifyForm }, kept))
    },
  }),
]

const { common, others } = senderGroups()

/** Those that are known, and any other one. */
const GROUPS = {
  common: [...common.map(toSender), TOKEN_SENDER, OPEN_SENDER],
  others: others.map(toSender),
}
const SENDERS: readonly Sender[] = [...GROUPS.common, ...GROUPS.others]

function toSender({ name, title, setup, docs }: SenderInfo): Sender {
  return { scheme: name, title, setup, docs }
}

/** One that is not open. */
function checkedSender(scheme: string): Sender | undefined {
  const sender = senderNamed(scheme)
  return sender === OPEN_SENDER ? undefined : sender
}

async function findKept(app: HooksRoutes, given: string): Promise<KeptProvider> {
  const { name } = await findOpen(app.hooks.db, given)
  return { name, url: app.baseUrl() + receiverPath(name) }
}

/** A secret that was made is shown this one time; without one, a page waits for the delivery. */
async function addedView(app: HooksRoutes, made: Made): Promise<View> {
  const first = await readFirst(app, made.name)
  const view = await addView(app, { kind: 'added', made, first })
  return { ...view, ...(made.token === null && { location: firstPath(made.name) }) }
}

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

function formStep(
  app: HooksRoutes,
  sender: Sender,
  state: FormState,
  kept?: KeptProvider,
): AddStep {
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
    kept,
    form: state,
  }
}

async function addView(app: HooksRoutes, step: AddStep): Promise<View> {
  const position = await app.hooks.stream.newest()
  return { page: () => addPage(step, position), fragment: () => addFragment(step) }
}

function givenSecret(proof: Proof, body: { secret?: string }): string | undefined {
  return proof === 'token' || proof === 'open' ? undefined : body.secret || undefined
}

function proofOf({ trust_mode, scheme }: { trust_mode: string; scheme: string }): Proof {
  const isToken = schemeNamed(scheme) === undefined
  return trust_mode === 'signed' || (trust_mode === 'token' && isToken) ? scheme : trust_mode
}

/** What of a form describes the scheme: it sends what it hides, too. */
function rowOf(proof: Proof, body: SchemeFields) {
  return readSchemeRow(proof, proof === 'hmac' ? body : placesIn(proof, body))
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
