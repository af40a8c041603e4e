import { existsSync } from 'node:fs'
import type { Log } from '../../../../kernel/log.ts'
import { mistakeIn, nameOf, type Check } from '../checks/run.ts'
import { followJsonFile, type FileKind } from './json-file.ts'
import * as Type from '../../../../kernel/schema.ts'
import { isObject } from '../../../../kernel/json.ts'
import { fits, mismatchOf } from '../../../../kernel/validate.ts'
import { Argv, Investigate, Path, type Mistake } from '../checks/check.ts'
import { RunbookName } from '../runbooks/runbooks.ts'
import { ServiceLog, logMistake, logName, Source, sourceMistake } from './reads.ts'

const Name = Type.String({ minLength: 1, maxLength: 200 })
const closed = { additionalProperties: false }
/** Checks of a file, of all its services together. */
export const MAX_CHECKS = 19_000

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
    /** Whether a person must say yes each time; false when absent. */
    approval: Type.Optional(Type.Boolean()),
  },
  closed,
)
export type Operation = Type.Static<typeof Operation>

export const Service = Type.Object(
  {
    name: Name,
    description: Type.Optional(Type.String({ maxLength: 2_000 })),
    /** Each by the schema of its type. */
    checks: Type.Array(Type.Unsafe<Check>({ type: 'object' }), { maxItems: 200 }),
    operations: Type.Optional(Type.Array(Operation, { maxItems: 50 })),
    /** Of its critical checks, unless they say otherwise. */
    investigate: Type.Optional(Investigate),
    /** What sessions read when something is wrong with it. */
    runbook: Type.Optional(RunbookName),
    /** What `read_log` reads. */
    logs: Type.Optional(Type.Array(ServiceLog, { maxItems: 50 })),
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
    /** Whether `journal` reads the host's whole journal; true when absent. */
    journal: Type.Optional(Type.Boolean()),
    /** Servers of metrics and of logs that tier 2 may ask. */
    sources: Type.Optional(Type.Array(Source, { maxItems: 50 })),
    /** A list of words is a command without the network. */
    readonly: Type.Optional(Type.Array(Type.Unsafe<readonly string[] | ReadonlyCommand>({}))),
  },
  closed,
)
export type Inventory = Type.Static<typeof Inventory>

/** The current inventory: what its file has, which is read again when it changes, and more. */
export interface InventorySource extends Pick<InventoryOptions, 'isOurs'> {
  /** With the checks that were made by hand. */
  current(): Promise<Inventory>
}

export interface InventoryOptions {
  /**
   * Whether a URL leads to a listener of this process, whose pages are open to all of this
   * machine.
   */
  isOurs: (url: URL) => boolean
  /** The file; undefined for this host and Gatehouse's own services. */
  file: () => string | undefined
  /** Where each running service listens. */
  addresses: () => ReadonlyMap<string, string>
  /** Services with the checks that were made by hand. */
  byHand: () => readonly Service[]
  dataDirectory: string
  log: Log
}

/** The file that `OPS_INVENTORY` names. */
export const INVENTORY_FILE: FileKind<Inventory> = { what: 'Inventory', read: readInventory }

/** Follows the inventory's file. Throws if it can't be read or is wrong at the start. */
export async function openInventory(options: InventoryOptions): Promise<InventorySource> {
  const ofFile = await followJsonFile(INVENTORY_FILE, options.file, options.log)
  const { isOurs, byHand } = options
  return {
    isOurs,
    current: async () => merged((await ofFile()) ?? defaultInventory(options), byHand()),
  }
}

/** An inventory with what was made by hand; the file wins where both have a name. */
function merged(inventory: Inventory, byHand: readonly Service[]): Inventory {
  if (byHand.length === 0) return inventory
  const added = new Map(byHand.map((service) => [service.name, service.checks]))
  const services = inventory.services.map((service): Service => {
    const names = new Set(service.checks.map(nameOf))
    const more = (added.get(service.name) ?? []).filter((check) => !names.has(nameOf(check)))
    return more.length === 0 ? service : { ...service, checks: [...service.checks, ...more] }
  })
  const known = new Set(services.map(({ name }) => name))
  return {
    ...inventory,
    services: [...services, ...byHand.filter(({ name }) => !known.has(name))],
  }
}

function readInventory(value: unknown): Inventory {
  refuseMismatch('', Inventory, value)
  const inventory = value as Inventory
  const count = inventory.services.reduce((sum, { checks }) => sum + checks.length, 0)
  if (count > MAX_CHECKS) throw new SyntaxError(`has ${count} checks; it may have ${MAX_CHECKS}`)
  const twice = firstTwin(inventory.services.map(({ name }) => name))
  if (twice !== undefined) throw new SyntaxError(`has service "${twice}" twice`)
  for (const [at, service] of inventory.services.entries()) {
    refuseMistakes(service.checks, `/services/${at}/checks`, mistakeIn)
    refuseOperations(service)
    refuseLogs(service, `/services/${at}/logs`)
  }
  refuseSources(inventory)
  for (const [at, command] of (inventory.readonly ?? []).entries()) {
    const where = `/readonly/${at}`
    if (isObject(command)) refuseMismatch(where, ReadonlyCommand, command)
    else if (!fits(Argv, command)) {
      throw wrong(`${where} must be a list of words, or an object with argv and network`)
    }
  }
  return inventory
}

function refuseOperations({ name, checks, operations = [] }: Service): void {
  const names = checks.map(nameOf)
  const twice = firstTwin(names) ?? firstTwin(operations.map((operation) => operation.name))
  if (twice !== undefined) throw new SyntaxError(`has "${twice}" twice in service "${name}"`)
  for (const { name: operation, verify } of operations) {
    // A check that does not exist would be missed only after the operation has run.
    if (verify === undefined || names.includes(verify)) continue
    const known = names.map((one) => `"${one}"`).join(', ') || 'none'
    const missing = `has no check "${verify}" in service "${name}"`
    throw new SyntaxError(`${missing} to verify "${operation}"; there are: ${known}`)
  }
}

function refuseLogs({ name, logs = [] }: Service, where: string): void {
  refuseMistakes(logs, where, logMistake)
  const twice = firstTwin(logs.map(logName))
  if (twice !== undefined) throw new SyntaxError(`has log "${twice}" twice in service "${name}"`)
}

function refuseSources({ sources = [] }: Inventory): void {
  refuseMistakes(sources, '/sources', sourceMistake)
  const twice = firstTwin(sources.map(({ name }) => name))
  if (twice !== undefined) throw new SyntaxError(`has source "${twice}" twice`)
}

function refuseMistakes<T>(
  parts: readonly T[],
  where: string,
  mistakeOf: (part: T) => Mistake | undefined,
): void {
  for (const [at, part] of parts.entries()) {
    const mistake = mistakeOf(part)
    if (mistake === undefined) continue
    const [path, expected] = mistake
    throw wrong(`${where}/${at}${path} ${expected}`)
  }
}

function firstTwin(names: readonly string[]): string | undefined {
  return names.find((name, at) => names.indexOf(name) !== at)
}

/** There where systemd runs this machine, as its sd_booted(3) says; not in most containers. */
const BOOTED = '/run/systemd/system'

/** Without a file: this host, and the health of Gatehouse's own services. */
function defaultInventory({ addresses, dataDirectory }: InventoryOptions): Inventory {
  const paths = [...new Set(['/', dataDirectory])]
  const host: Service = {
    name: 'host',
    checks: [
      ...paths.map((path): Check => ({ type: 'disk', path })),
      { type: 'memory' },
      { type: 'load' },
      ...(existsSync(BOOTED) ? [{ type: 'unit' } as const] : []),
    ],
  }
  const own = [...addresses()].filter(([, address]) => address.startsWith('http://'))
  const services = own.map(([name, address]): Service => {
    return { name, checks: [{ type: 'http', name: 'health', url: `${address}/healthz` }] }
  })
  return { services: [host, ...services] }
}

/** Says where a part of an inventory is wrong, and what is expected there. */
function refuseMismatch(where: string, schema: Type.TSchema, value: unknown): void {
  if (fits(schema, value)) return
  const { path, message } = mismatchOf(schema, value)
  throw wrong(`${`${where}${path}` || 'the whole'} ${message}`)
}

function wrong(problem: string): SyntaxError {
  return new SyntaxError(`is wrong: ${problem}`)
}
