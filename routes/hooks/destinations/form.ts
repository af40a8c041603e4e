import Type from 'typebox'
import { field, withDefault } from '../../../kernel/validate.ts'
import type { Typed } from '../../../kernel/http/view.ts'
import {
  DestinationForm,
  DestinationUpdate,
  SCHEME_FORM,
  SIGNING_SCHEMES,
} from '../../../services/hooks/destinations/form.ts'

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

export const AddFields = Type.Object({ ...DestinationForm.properties, ...credentials })
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

/** What was typed, without the secrets: a page does not show them again. */
export function withoutSecrets(typed: Typed): Typed {
  const shown = Object.entries(typed).filter(([name]) => !SECRETS.includes(name))
  return Object.fromEntries(shown)
}

const SECRETS: readonly string[] = ['sign_secret', 'authorization', 'headers']
