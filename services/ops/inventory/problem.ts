import type { TLocalizedValidationError } from 'typebox/error'
import { Errors } from 'typebox/value'
import { Check, Inventory, ReadonlyCommand } from './schema.ts'

const CHECK = /^\/services\/(\d+)\/checks\/(\d+)/
const COMMAND = /^\/readonly\/(\d+)/

/** What is wrong with an inventory, in one line: where, and what is expected there. */
export function problemOf(value: unknown): string {
  const [first] = Errors(Inventory, value)
  const path = first?.instancePath ?? ''
  // A union says what its first branch misses, whichever branch was meant: the value tells which.
  const check = CHECK.exec(path)
  if (check !== null) return checkProblem(value, check[0], Number(check[1]), Number(check[2]))
  const command = COMMAND.exec(path)
  return command === null ? said(first, '') : commandProblem(value, command[0], Number(command[1]))
}

function commandProblem(value: unknown, where: string, index: number): string {
  const { readonly: commands } = value as { readonly: readonly unknown[] }
  const command = commands[index]
  const isObject = typeof command === 'object' && command !== null && !Array.isArray(command)
  if (isObject) return said(Errors(ReadonlyCommand, command)[0], where)
  return `${where} must be a list of words, or an object with argv and network`
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
