import type { TLocalizedValidationError } from 'typebox/error'
import { Errors } from 'typebox/value'
import { Check, Inventory } from './schema.ts'

const CHECK = /^\/services\/(\d+)\/checks\/(\d+)/

/** What is wrong with an inventory, in one line: where, and what is expected there. */
export function problemOf(value: unknown): string {
  const [first] = Errors(Inventory, value)
  const at = CHECK.exec(first?.instancePath ?? '')
  // A union says what its first branch misses, whichever branch was meant: the check's type tells.
  return at === null ? said(first, '') : checkProblem(value, at[0], Number(at[1]), Number(at[2]))
}

function checkProblem(value: unknown, where: string, service: number, index: number): string {
  const { services } = value as { services: { checks: unknown[] }[] }
  const check = services[service]?.checks[index]
  const type = typeof check === 'object' && check !== null && 'type' in check ? check.type : null
  const schema = Check.anyOf.find(({ properties }) => properties.type.const === type)
  if (schema !== undefined) return said(Errors(schema, check)[0], where)
  const types = Check.anyOf.map(({ properties }) => properties.type.const).join(', ')
  return `${where}/type must be one of ${types}`
}

function said(error: TLocalizedValidationError | undefined, where: string): string {
  const path = `${where}${error?.instancePath ?? ''}` || 'the whole'
  // How a member that a closed object does not have is reported.
  return error?.keyword === 'boolean' ? `${path} is not known` : `${path} ${error?.message}`
}
