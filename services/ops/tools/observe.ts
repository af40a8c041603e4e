import Type from 'typebox'
import { runCheck } from '../checks/check.ts'
import { nameOf } from '../inventory/inventory.ts'
import type { Service } from '../inventory/schema.ts'
import { cooldownOf } from './operations.ts'
import { defineTool, done, refused } from './tool.ts'

const Name = (description: string) => Type.String({ minLength: 1, maxLength: 2_000, description })

export const listServicesTool = defineTool({
  name: 'list_services',
  description: 'Lists the services, their checks, and the operations that may be run on them.',
  tier: 1,
  takes: {},
  async run(_, { inventory }) {
    const { services } = await inventory.current()
    return done(services.map(describe).join('\n') || 'The inventory has no services.')
  },
})

export const runCheckTool = defineTool({
  name: 'run_check',
  description: 'Runs one check of a service, or all of them, and tells what it found.',
  tier: 1,
  takes: {
    service: Name('Name of the service'),
    check: Type.Optional(Name('Name of the check; all of the service without it')),
  },
  async run({ service: wanted, check: only }, { inventory, redact, job: { signal, marker } }) {
    const { services } = await inventory.current()
    const service = services.find(({ name }) => name === wanted)
    if (service === undefined) return refused(`There is no service "${wanted}".`)
    const checks = service.checks.filter((check) => only === undefined || nameOf(check) === only)
    if (checks.length === 0) {
      return refused(
        `Service "${wanted}" has ${only === undefined ? 'no checks' : `no check "${only}"`}.`,
      )
    }
    const lines = await Promise.all(
      checks.map(async (check) => {
        const { ok, message, ms } = await runCheck(check, { signal, marker, redact })
        return `${ok ? 'ok' : 'FAIL'} ${nameOf(check)}: ${message} (${ms} ms)`
      }),
    )
    return done(lines.join('\n'))
  },
})

function describe({ name, description, checks, operations = [] }: Service): string {
  const lines = [
    `${name}${description === undefined ? '' : `: ${description}`}`,
    ...checks.map((check) => `  check "${nameOf(check)}"`),
    ...operations.map((operation) => {
      const { count, window_s } = cooldownOf(operation)
      const limit = `${count} within ${window_s} s`
      return `  operation "${operation.name}": ${operation.action_type}, from tier ${operation.min_tier ?? 3}, ${limit}`
    }),
  ]
  return lines.join('\n')
}
