import * as Type from '../../../../kernel/schema.ts'
import { field, withDefault } from '../../../../kernel/validate.ts'
import type { Typed } from '../../../../kernel/http/view.ts'
import { isGenericName } from '../../../../services/hooks/receive/schemes/provider-names.ts'
import {
  DestinationForm,
  DestinationUpdate,
  MAX_NAME,
  NAME_FORM,
  SCHEME_FORM,
  SIGNING_SCHEMES,
} from '../../../../services/hooks/send/destinations/form.ts'

// The forms of the pages: what is one member of the API's body may be several fields here.

const credentials = {
  /** The scheme; empty: as the provider signs. */
  sign_with: field(
    Type.Optional(Type.Enum(['', ...SIGNING_SCHEMES])),
    `must be ${SCHEME_FORM}, or nothing.`,
  ),
  /** An empty field keeps the secret. */
  sign_secret: Type.Optional(Type.String()),
  /** The same. */
  authorization: Type.Optional(Type.String()),
  remove_authorization: field(withDefault(Type.Boolean(), false), 'must be ticked or not.'),
}

/** An empty name is taken from the URL. */
const name = field(withDefault(Type.String(), ''), NAME_FORM, [
  (text) => text === '' || isGenericName(text),
  NAME_FORM,
])

export const AddFields = Type.Object({ ...DestinationForm.properties, ...credentials, name })
export const SetFields = Type.Object({ ...DestinationUpdate.properties, ...credentials })

type Credentials = Type.Static<Type.TObject<typeof credentials>>

/** The fields as members of the API's body. */
export function toBody<Sent extends Credentials>(sent: Sent) {
  const { sign_with, sign_secret, authorization, remove_authorization, ...others } = sent
  const scheme = sign_with === '' ? null : sign_with
  const secret = sign_secret?.trim()
  return {
    ...others,
    ...(scheme === null && { sign_with: null }),
    ...(scheme && { sign_with: { scheme, ...(secret && { secret }) } }),
    ...(authorization && { authorization }),
    ...(remove_authorization && { authorization: null }),
  }
}

/** The same of a new destination, with its name. */
export function toNewBody({ name, ...others }: Type.Static<typeof AddFields>) {
  return { ...toBody(others), name: name === '' ? nameOf(others.url) : name }
}

/** The host of a URL as a name: `erp-example-com`. */
function nameOf(url: string): string {
  const name = new URL(url).host.replaceAll(/[^a-z0-9]+/g, '-')
  return name.replace(/^-/, '').slice(0, MAX_NAME).replace(/-$/, '')
}

/** What was typed, without the secrets: a page does not show them again. */
export function withoutSecrets(typed: Typed): Typed {
  const shown = Object.entries(typed).filter(([name]) => !SECRETS.includes(name))
  return Object.fromEntries(shown)
}

const SECRETS: readonly string[] = ['sign_secret', 'authorization', 'headers']
