import { Compile } from 'typebox/compile'
import { lazy } from '../../../kernel/lazy.ts'
import type { Log } from '../../../kernel/log.ts'
import { followJsonFile, type FileKind } from '../json-file.ts'
import { problemOf } from './problem.ts'
import { Inventory, type Check, type Service } from './schema.ts'

/** The inventory as it stands; read again when its file has changed. */
export interface InventorySource extends Pick<InventoryOptions, 'isOurs'> {
  current(): Promise<Inventory>
}

export interface InventoryOptions {
  /** Whether a URL leads to a listener of this process, whose pages are open to all of this machine. */
  readonly isOurs: (url: URL) => boolean
  /** The file; undefined for this host and Gatehouse's own services. */
  readonly file: () => string | undefined
  /** Where each running service listens. */
  readonly addresses: () => ReadonlyMap<string, string>
  readonly dataDirectory: string
  readonly log: Log
}

const schema = lazy(() => Compile(Inventory))

/** The file that `OPS_INVENTORY` names. */
export const INVENTORY_FILE: FileKind<Inventory> = { what: 'Inventory', read: readInventory }

/** Follows the inventory's file. Throws for one that can't be read or is wrong, when it is first read. */
export async function openInventory(options: InventoryOptions): Promise<InventorySource> {
  const written = await followJsonFile(INVENTORY_FILE, options.file, options.log)
  const { isOurs } = options
  return { isOurs, current: async () => (await written()) ?? usualInventory(options) }
}

function readInventory(value: unknown): Inventory {
  if (!schema().Check(value)) throw new SyntaxError(`is wrong: ${problemOf(value)}`)
  const names = value.services.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw new SyntaxError(`has service "${twice}" twice`)
  for (const [at, service] of value.services.entries()) {
    refuseUrls(service, at)
    refuseEmptyProcess(service, at)
    refuseTwins(service)
    refuseVerify(service)
  }
  return value
}

/** What a check is called: its name, or what it looks at. */
export function nameOf(check: Check): string {
  if (check.name !== undefined) return check.name
  switch (check.type) {
    case 'http':
      return `http ${check.url}`
    case 'tcp':
      return `tcp ${check.host}:${check.port}`
    case 'tls':
      return `tls ${check.host}:${check.port ?? 443}`
    case 'dns':
      return `dns ${check.host}`
    case 'unit':
      return check.unit === undefined ? 'units' : `unit ${check.unit}`
    case 'process':
      return ['process', check.program, check.match].filter(Boolean).join(' ')
    case 'disk':
    case 'file_age':
      return `${check.type} ${check.path}`
    case 'memory':
    case 'load':
      return check.type
    case 'command':
      return `command ${check.argv.join(' ')}`
  }
}

/** What no request can be made of; the address would be quoted in events, with a password in it. */
function refuseUrls({ checks }: Service, service: number): void {
  const wrong = checks.findIndex((check) => {
    if (check.type !== 'http') return false
    const url = URL.canParse(check.url) ? new URL(check.url) : undefined
    return url === undefined || url.username !== '' || url.password !== ''
  })
  if (wrong === -1) return
  const where = `/services/${service}/checks/${wrong}/url`
  throw new SyntaxError(`is wrong: ${where} must be a URL without user and password`)
}

/** A process check that names nothing would be good for any process. */
function refuseEmptyProcess({ checks }: Service, service: number): void {
  const wrong = checks.findIndex(
    (check) => check.type === 'process' && check.match === undefined && check.program === undefined,
  )
  if (wrong === -1) return
  throw new SyntaxError(`is wrong: /services/${service}/checks/${wrong} must have match or program`)
}

function refuseTwins({ name, checks, operations = [] }: Service): void {
  for (const names of [checks.map(nameOf), operations.map((operation) => operation.name)]) {
    const twice = names.find((one, at) => names.indexOf(one) !== at)
    if (twice !== undefined) throw new SyntaxError(`has "${twice}" twice in service "${name}"`)
  }
}

/** A check that is not there would be missed once the operation has run. */
function refuseVerify({ name, checks, operations = [] }: Service): void {
  const names = checks.map(nameOf)
  const wrong = operations.find(({ verify }) => verify !== undefined && !names.includes(verify))
  if (wrong === undefined) return
  const known = names.map((one) => `"${one}"`).join(', ') || 'none'
  throw new SyntaxError(
    `has no check "${wrong.verify}" in service "${name}" to verify "${wrong.name}"; there are: ${known}`,
  )
}

/** Without a file: this host, and the health of Gatehouse's own services. */
function usualInventory({ addresses, dataDirectory }: InventoryOptions): Inventory {
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
