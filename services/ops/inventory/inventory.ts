import type { Log } from '../../../kernel/log.ts'
import { nameOf, type Check } from '../checks/run.ts'
import { followJsonFile, type FileKind } from '../json-file.ts'
import { schemaProblem, type Inventory, type Service } from './schema.ts'

/** The current inventory; its file is read again when it changes. */
export interface InventorySource extends Pick<InventoryOptions, 'isOurs'> {
  current(): Promise<Inventory>
}

export interface InventoryOptions {
  /**
   * Whether a URL leads to a listener of this process, whose pages are open to all of this machine.
   */
  readonly isOurs: (url: URL) => boolean
  /** The file; undefined for this host and Gatehouse's own services. */
  readonly file: () => string | undefined
  /** Where each running service listens. */
  readonly addresses: () => ReadonlyMap<string, string>
  readonly dataDirectory: string
  readonly log: Log
}

/** The file that `OPS_INVENTORY` names. */
export const INVENTORY_FILE: FileKind<Inventory> = { what: 'Inventory', read: readInventory }

/** Follows the inventory's file. Throws if it can't be read or is wrong at the start. */
export async function openInventory(options: InventoryOptions): Promise<InventorySource> {
  const ofFile = await followJsonFile(INVENTORY_FILE, options.file, options.log)
  const { isOurs } = options
  return { isOurs, current: async () => (await ofFile()) ?? defaultInventory(options) }
}

function readInventory(value: unknown): Inventory {
  const problem = schemaProblem(value)
  if (problem !== undefined) throw new SyntaxError(`is wrong: ${problem}`)
  const inventory = value as Inventory
  const twice = firstTwin(inventory.services.map(({ name }) => name))
  if (twice !== undefined) throw new SyntaxError(`has service "${twice}" twice`)
  for (const [at, service] of inventory.services.entries()) {
    refuseChecks(service, `/services/${at}/checks`)
    refuseOperations(service)
  }
  return inventory
}

function refuseChecks({ name, checks }: Service, where: string): void {
  for (const [at, check] of checks.entries()) {
    if (check.type === 'http' && !isPlainUrl(check.url)) {
      throw new SyntaxError(`is wrong: ${where}/${at}/url must be a URL without user and password`)
    }
    // It would pass for any process.
    if (check.type === 'process' && check.match === undefined && check.program === undefined) {
      throw new SyntaxError(`is wrong: ${where}/${at} must have match or program`)
    }
  }
  const twice = firstTwin(checks.map(nameOf))
  if (twice !== undefined) throw new SyntaxError(`has "${twice}" twice in service "${name}"`)
}

function refuseOperations({ name, checks, operations = [] }: Service): void {
  const twice = firstTwin(operations.map((operation) => operation.name))
  if (twice !== undefined) throw new SyntaxError(`has "${twice}" twice in service "${name}"`)
  // A check that does not exist would be missed only after the operation has run.
  const names = checks.map(nameOf)
  const wrong = operations.find(({ verify }) => verify !== undefined && !names.includes(verify))
  if (wrong === undefined) return
  const known = names.map((one) => `"${one}"`).join(', ') || 'none'
  throw new SyntaxError(
    `has no check "${wrong.verify}" in service "${name}" to verify "${wrong.name}"; there are: ${known}`,
  )
}

/** `fetch` refuses a URL with a password, and events would quote it. */
function isPlainUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && url.username === '' && url.password === ''
}

function firstTwin(names: readonly string[]): string | undefined {
  return names.find((name, at) => names.indexOf(name) !== at)
}

/** Without a file: this host, and the health of Gatehouse's own services. */
function defaultInventory({ addresses, dataDirectory }: InventoryOptions): Inventory {
  const paths = [...new Set(['/', dataDirectory])]
  const host: Service = {
    name: 'host',
    checks: [
      ...paths.map((path): Check => ({ type: 'disk', path })),
      { type: 'memory' },
      { type: 'load' },
      { type: 'unit' },
    ],
  }
  const own = [...addresses()].filter(([, address]) => address.startsWith('http://'))
  const services = own.map(([name, address]): Service => {
    return { name, checks: [{ type: 'http', name: 'health', url: `${address}/healthz` }] }
  })
  return { services: [host, ...services] }
}
