import { oneOf } from '../kernel/readings.ts'
import { configuredSecrets } from '../services/hooks/secrets.ts'
import { SERVICES, type ServiceName } from './addresses.ts'
import { addressFindings } from './checks/addresses.ts'
import { configurationFindings, proxyFindings } from './checks/configuration.ts'
import { databaseFindings, inspectDatabase } from './checks/database.ts'
import { dataDirectoryFindings, secretFileFindings } from './checks/files.ts'
import { reportFindings, type Finding } from './checks/finding.ts'
import { agentFindings, queueFindings } from './checks/services.ts'
import { command, JSON_FLAG, value, type ConfiguredTools } from './command.ts'
import type { VariableName } from './configuration.ts'

export const commands = [
  command({
    name: 'check',
    summary: 'say of everything that a start needs whether it is ok, or what to do; change nothing',
    args: {
      service: {
        ...value(
          SERVICES.map((service) => `[${service}]`).join(' '),
          'what is going to run, all three unless named',
          oneOf(...SERVICES),
        ),
        repeated: true,
      },
    },
    flags: { json: JSON_FLAG },
    needs: 'any configuration',
    async run({ args: { service: named }, flags: { json } }, tools) {
      const services = SERVICES.filter((service) => named.includes(service))
      const findings = await checkAll(services.length === 0 ? SERVICES : services, tools)
      return reportFindings(findings, json, tools.output)
    },
    // The rest is checked by the process that asks.
    runInServer: async (tools) =>
      reportFindings(await inspectDatabase(tools.db, tools), true, tools.output),
  }),
]

async function checkAll(
  services: readonly ServiceName[],
  { config, environment, random, log }: ConfiguredTools,
): Promise<readonly Finding[]> {
  const { PATH: path = '', CREDENTIALS_DIRECTORY: credentials } = environment
  /** Leaves a check out when one of its variables is wrong: nobody knows what was meant. */
  async function when(
    names: readonly VariableName[],
    find: () => readonly Finding[] | Promise<readonly Finding[]>,
  ): Promise<readonly Finding[]> {
    const unknown = config.problems.some(({ variables }) =>
      names.some((name) => variables.includes(name)),
    )
    return unknown ? [] : find()
  }
  async function whenRuns(
    service: ServiceName,
    names: readonly VariableName[],
    find: () => Promise<readonly Finding[]>,
  ): Promise<readonly Finding[]> {
    return services.includes(service) ? when(names, find) : []
  }
  const groups = await Promise.all([
    when(['GATEHOUSE_TRUSTED_PROXIES', 'HOOKS_BASE_URL', 'LINKS_BASE_URL', 'OPS_BASE_URL'], () =>
      proxyFindings(config, services),
    ),
    configurationFindings(config),
    secretFileFindings(config, credentials),
    when(['GATEHOUSE_DATA_DIR'], () => dataDirectoryFindings(config.current.GATEHOUSE_DATA_DIR)),
    when(['DATABASE_URL', 'GATEHOUSE_DATA_DIR'], () =>
      databaseFindings({ config, log, secrets: configuredSecrets(config, random) }),
    ),
    addressFindings(config, services),
    whenRuns('hooks', ['HOOKS_QUEUE_URL'], () => queueFindings(config)),
    whenRuns('ops', AGENT_VARIABLES, () => agentFindings(config, path)),
  ])
  return groups.flat()
}

const AGENT_VARIABLES = [
  'OPS_INVENTORY',
  'OPS_PRICES',
  'OPS_RUNNER',
  'OPS_AGENT_COMMAND',
  'OPS_MODEL_URL',
  'OPS_UNSANDBOXED',
] as const
