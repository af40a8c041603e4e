import type { Log } from '../../kernel/log.ts'
import { nameOf, Check } from './checks/run.ts'
import { followJsonFile, type FileKind } from './json-file.ts'
import Type from 'typebox'
import { isObject, objectsOf, objectOf } from '../../kernel/json.ts'
import { fits, mismatchOf } from '../../kernel/validate.ts'
import { Argv, Path } from './checks/check.ts'

const Name = Type.String({ minLength: 1, maxLength: 200 })
const closed = { additionalProperties: false }

/** Something that tier 3 may do to a service. */
export const Operation = Type.Object(
  {
    name: Name,
    /** `restart`, `redeployment`, or another type with a cooldown of its own. */
    action_type: Name,
    argv: Argv,
    min_tier: Type.Optional(Type.Integer({ minimum: 1, maximum: 3 })),
    cooldown: Type.Optional(
      Type.Object(
        { count: Type.Integer({ minimum: 0 }), window_s: Type.Integer({ minimum: 1 }) },
        closed,
      ),
    ),
    /** Name of a check of the service that must pass afterwards. */
    verify: Type.Optional(Name),
    timeout_s: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 600 })),
  },
  closed,
)
export type Operation = Type.Static<typeof Operation>

export const Service = Type.Object(
  {
    name: Name,
    description: Type.Optional(Type.String({ maxLength: 2_000 })),
    checks: Type.Array(Check, { maxItems: 200 }),
    operations: Type.Optional(Type.Array(Operation, { maxItems: 50 })),
  },
  closed,
)
export type Service = Type.Static<typeof Service>

/** A command that tier 2 may run, with further arguments of the model's choice. */
export const ReadonlyCommand = Type.Object(
  {
    argv: Argv,
    /** Whether it may reach the network and the sockets of other programs; false when absent. */
    network: Type.Optional(Type.Boolean()),
  },
  closed,
)
export type ReadonlyCommand = Type.Static<typeof ReadonlyCommand>

/** The file that `OPS_INVENTORY` names (decisions.md section 5, Inventory). */
export const Inventory = Type.Object(
  {
    services: Type.Array(Service, { maxItems: 1_000 }),
    /** Folders in which tier 2 may read files, beside the repositories. */
    roots: Type.Optional(Type.Array(Path)),
    /** A list of words is a command without the network. */
    readonly: Type.Optional(Type.Array(Type.Union([Argv, ReadonlyCommand]))),
  },
  closed,
)
export type Inventory = Type.Static<typeof Inventory>

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

/** Where an inventory is wrong and what is expected there; undefined if it is right. */
export function schemaProblem(value: unknown): string | undefined {
  if (fits(Inventory, value)) return undefined
  const { path } = mismatchOf(Inventory, value)
  // The error of a union is that of its first branch: the value tells which branch was meant.
  const [at, service, check] = /^\/services\/(\d+)\/checks\/(\d+)/.exec(path) ?? []
  if (at !== undefined) return checkProblem(value, at, Number(service), Number(check))
  const [where, command] = /^\/readonly\/(\d+)/.exec(path) ?? []
  if (where !== undefined) return commandProblem(value, where, Number(command))
  return problemAt('', Inventory, value)
}

function checkProblem(value: unknown, where: string, service: number, index: number): string {
  const { services } = objectOf(value)
  const { checks } = objectsOf(services)[service] ?? {}
  const check = objectsOf(checks)[index] ?? {}
  const schema = Check.anyOf.find(({ properties }) => properties.type.const === check['type'])
  if (schema !== undefined) return problemAt(where, schema, check)
  const types = Check.anyOf.map(({ properties }) => properties.type.const).join(', ')
  return `${where}/type must be one of ${types}`
}

function commandProblem(value: unknown, where: string, index: number): string {
  const { readonly: commands } = objectOf(value)
  const command: unknown = Array.isArray(commands) ? commands[index] : undefined
  if (isObject(command)) return problemAt(where, ReadonlyCommand, command)
  return `${where} must be a list of words, or an object with argv and network`
}

function problemAt(where: string, schema: Type.TSchema, value: unknown): string {
  const { path, message } = mismatchOf(schema, value)
  return `${`${where}${path}` || 'the whole'} ${message}`
}
