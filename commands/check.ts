import type { VariableName } from '../kernel/variables.ts'
import { addressFindings } from './checks/addresses.ts'
import { agentFindings, queueFindings } from './checks/services.ts'
import { configurationFindings, proxyFindings } from './checks/configuration.ts'
import { dataDirectoryFindings, secretFileFindings } from './checks/files.ts'
import { databaseFindings, type DatabaseLook } from './checks/database.ts'
import { reportFindings, type Finding } from './checks/finding.ts'
import { UsageError, type Output, type Surroundings } from './output.ts'
import { SERVICES, type ServiceName } from './addresses.ts'

export const CHECK_USAGE = 'gatehouse check [hooks] [links] [ops] [--json]'

/** Reads the arguments of `check`: what is going to run, all three unless said, and whether to print JSON. */
export function parseCheck(args: readonly string[]): {
  readonly services: readonly ServiceName[]
  readonly json: boolean
} {
  const named = SERVICES.filter((service) => args.includes(service))
  if (args.some((arg) => arg !== '--json' && !named.some((service) => service === arg)))
    throw new UsageError('"check" takes names of services and --json')
  return { services: named.length === 0 ? SERVICES : named, json: args.includes('--json') }
}

/** `gatehouse check`: looks at everything that a start needs and changes nothing. */
export async function runCheck(
  args: readonly string[],
  look: DatabaseLook & Pick<Surroundings, 'environment'>,
  output: Output,
): Promise<number> {
  const { services, json } = parseCheck(args)
  const { config, environment } = look
  /** What depends on a variable that is wrong is left out: nobody knows what is meant. */
  async function when(
    names: readonly VariableName[],
    find: () => readonly Finding[] | Promise<readonly Finding[]>,
  ): Promise<readonly Finding[]> {
    const unknown = config.problems.some(({ variables }) =>
      names.some((name) => variables.includes(name)),
    )
    return unknown ? [] : find()
  }
  const { PATH: path = '', CREDENTIALS_DIRECTORY: credentials } = environment
  const runs = (service: ServiceName): boolean => services.includes(service)
  const groups = await Promise.all([
    when(['GATEHOUSE_TRUSTED_PROXIES', 'HOOKS_BASE_URL', 'LINKS_BASE_URL', 'OPS_BASE_URL'], () =>
      proxyFindings(config, services),
    ),
    configurationFindings(config),
    secretFileFindings(config, credentials),
    when(['GATEHOUSE_DATA_DIR'], () => dataDirectoryFindings(config.current.GATEHOUSE_DATA_DIR)),
    when(['DATABASE_URL', 'GATEHOUSE_DATA_DIR'], () => databaseFindings(look)),
    addressFindings(config, services),
    when(['HOOKS_QUEUE_URL'], () => (runs('hooks') ? queueFindings(config) : [])),
    when(
      [
        'OPS_INVENTORY',
        'OPS_PRICES',
        'OPS_RUNNER',
        'OPS_AGENT_COMMAND',
        'OPS_MODEL_URL',
        'OPS_UNSANDBOXED',
      ],
      () => (runs('ops') ? agentFindings(config, path) : []),
    ),
  ])
  return reportFindings(groups.flat(), json, output)
}
