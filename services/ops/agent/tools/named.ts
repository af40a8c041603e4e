import { badRequest } from '../../../../kernel/fault.ts'
import { logName, type ServiceLog, type Source } from '../../watch/inventory/reads.ts'
import type { ToolContext } from './tool.ts'

// What a call may name: logs and sources stand in the inventory file, and nothing else is reached.

/** A log of a service. Throws a Fault that names those that there are. */
export async function findLog(
  { inventory }: Pick<ToolContext, 'inventory'>,
  service: string,
  named: string | undefined,
): Promise<ServiceLog> {
  const { services } = await inventory.current()
  const found = services.find(({ name }) => name === service)
  if (found === undefined) throw badRequest(`There is no service "${service}".`)
  return pick(found.logs ?? [], named, logName, `log of "${service}"`)
}

/** A source of a type. Throws a Fault that names those that there are. */
export async function findSource(
  { inventory }: Pick<ToolContext, 'inventory'>,
  type: Source['type'],
  named: string | undefined,
): Promise<Source> {
  const { sources = [] } = await inventory.current()
  const fitting = sources.filter((one) => one.type === type)
  return pick(fitting, named, ({ name }) => name, `source of the type ${type}`)
}

/** The one with this name, or the only one. */
function pick<T>(
  all: readonly T[],
  named: string | undefined,
  nameOf: (one: T) => string,
  what: string,
): T {
  const [first, ...others] = all
  const isOnly = named === undefined && others.length === 0
  const found = isOnly ? first : all.find((one) => nameOf(one) === named)
  if (found !== undefined) return found
  if (first === undefined) throw badRequest(`The inventory has no ${what}.`)
  const names = all.map((one) => `"${nameOf(one)}"`).join(', ')
  throw badRequest(`Name a ${what}; there are: ${names}.`)
}
