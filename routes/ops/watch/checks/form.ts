import * as Type from '../../../../kernel/schema.ts'
import type { Definition } from '../../../../db/ops/watch/checks.ts'
import type { CheckFields } from '../../../../html/ops/watch/checks/form.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import type { FormState } from '../../../../kernel/http/view.ts'
import {
  membersOf,
  readMember,
  TYPES_BY_HAND,
} from '../../../../services/ops/watch/checks/members.ts'
import { CHECK_SCHEMAS } from '../../../../services/ops/watch/checks/run.ts'

const Text = Type.Optional(Type.String({ maxLength: 16_384 }))

/** What the forms of checks of all types have; each has the members of its own type. */
export const CheckForm = Type.Object({
  service: Text,
  name: Text,
  type: Text,
  ...Object.fromEntries(membersOf().map(({ name }) => [name, Text])),
})

type Fields = Readonly<Record<string, string | undefined>>

/** The check that the fields of a form describe; an empty field is one that is left out. */
export function checkIn({ type = '', name = '', ...fields }: Fields): Definition {
  if (!TYPES_BY_HAND.some((known) => known === type)) {
    throw badRequest(`type must be one of ${TYPES_BY_HAND.join(', ')}`, 'type')
  }
  const members = membersOf(type).flatMap((member) => {
    const text = fields[member.name]?.trim() ?? ''
    return text === '' ? [] : [[member.name, readMember(member, text)] as const]
  })
  return { type, ...(name.trim() !== '' && { name }), ...Object.fromEntries(members) }
}

/** The fields of a type; undefined for one that can't be made by hand. */
export function fieldsOf(type: string, form: FormState): CheckFields | undefined {
  const known = TYPES_BY_HAND.find((one) => one === type)
  const schema = known && CHECK_SCHEMAS.get(known)
  return schema && { type, members: membersOf(type), schema, form }
}
