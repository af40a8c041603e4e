import { configuredSecrets } from '../../services/hooks/receive/schemes/configured-secrets.ts'
import { areKnown, type ServiceName, type VariableName } from '../frame/configuration.ts'
import { addressFindings } from './checks/addresses.ts'
import {
  configurationFindings,
  proxyFindings,
  dataDirectoryFindings,
  secretFileFindings,
  waitingFindings,
} from './checks/configuration.ts'
import { databaseFindings, inspectDatabase } from './checks/database.ts'
import { reportFindings, type Findings } from '../frame/output.ts'
import { agentFindings, queueFindings, recoveryFindings } from './checks/services.ts'
import {
  command,
  JSON_FLAG,
  servicesArgument,
  servicesNamed,
  type ConfiguredTools,
} from '../frame/command.ts'

const SUMMARY =
  'say of everything that a start needs whether it is ok, or what to do; change nothing'

export const commands = [
  command({
    name: 'check',
    summary: SUMMARY,
    args: { service: servicesArgument('what is going to run, all three unless named') },
    flags: { json: JSON_FLAG },
    needs: 'any configuration',
    async run({ args: { service: named }, flags: { json } }, tools) {
      const findings = await checkAll(servicesNamed(named), tools)
      return reportFindings(findings, json, tools.output)
    },
    // The rest is checked by the process that asks.
    runInServer: async (tools) =>
      reportFindings(
        [...waitingFindings(tools.config), ...(await inspectDatabase(tools.db, tools))],
        true,
        tools.output,
      ),
  }),
]

/** Everything that a start of some services needs. */
export async function checkAll(
  services: readonly ServiceName[],
  { config, environment, random, log }: ConfiguredTools,
): Promise<Findings> {
  const { PATH: path = '', CREDENTIALS_DIRECTORY: credentials } = environment
  const { GATEHOUSE_DATA_DIR: directory } = config.current
  /** Skips checks of other services, and checks that depend on a variable with a wrong value. */
  async function when(
    names: readonly VariableName[],
    find: () => Findings | Promise<Findings>,
    service?: ServiceName,
  ): Promise<Findings> {
    const isMeant = service === undefined || services.includes(service)
    return isMeant && areKnown(config, names) ? find() : []
  }
  const groups = await Promise.all([
    when(PROXY_VARIABLES, () => proxyFindings(config, services)),
    configurationFindings(config),
    secretFileFindings(config, credentials),
    when(['GATEHOUSE_DATA_DIR'], () =>
      dataDirectoryFindings(directory, config.current.DATABASE_URL === undefined),
    ),
    when(['DATABASE_URL', 'GATEHOUSE_DATA_DIR', 'GATEHOUSE_INSTANCES'], () =>
      databaseFindings({ config, log, secrets: configuredSecrets(config, random) }, services),
    ),
    addressFindings(config, services),
    when(['HOOKS_QUEUE_URL'], () => queueFindings(config), 'hooks'),
    when(['HOOKS_RECOVER'], () => recoveryFindings(config), 'hooks'),
    when(AGENT_VARIABLES, () => agentFindings(config, path), 'ops'),
  ])
  return groups.flat()
}

const PROXY_VARIABLES = [
  'GATEHOUSE_TRUSTED_PROXIES',
  'HOOKS_BASE_URL',
  'LINKS_BASE_URL',
  'OPS_BASE_URL',
] as const

const AGENT_VARIABLES = [
  'OPS_INVENTORY',
  'OPS_RUNBOOKS',
  'OPS_PRICES',
  'OPS_RUNNER',
  'OPS_AGENT_COMMAND',
  'OPS_MODEL_URL',
  'OPS_UNSANDBOXED',
] as const
