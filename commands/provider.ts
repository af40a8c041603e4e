import { Fault } from '../kernel/fault.ts'
import { formatDuration } from '../kernel/time.ts'
import {
  createProvider,
  enableProvider,
  providerStatus,
  readProviders,
  removeProvider,
  rotateSecret,
  setAlarms,
  type AlarmChange,
  type MadeProvider,
  type ProviderTools,
} from '../services/hooks/providers.ts'
import { isSignedProvider } from '../services/hooks/secrets.ts'
import { DONE, fail, table, UsageError, type Output } from './command.ts'
import { parseProvider, type Parsed } from './provider-arguments.ts'

export const PROVIDER_USAGE =
  'gatehouse provider add NAME [--open | --signed [--secret SECRET]] [--enable] | list [--json] | enable NAME | disable NAME | rotate NAME [--overlap 24h] [--secret SECRET] | alarm NAME [--expect 1h] [--burst 20] [--off] | remove NAME'

/** What the command works on: its own database, or that of the server that runs it. */
export interface ProviderCommandTools extends ProviderTools {
  /** How long a rotated secret is accepted when the command line does not say it. */
  readonly overlapSeconds: number
}

/**
 * `gatehouse provider …`: the same in a process of its own and inside the server. A token or secret
 * that it makes is the last line of stdout, alone.
 */
export async function runProvider(
  args: readonly string[],
  tools: ProviderCommandTools,
  output: Output,
): Promise<number> {
  const parsed = parseProvider(args)
  try {
    return await act(parsed, tools, output)
  } catch (error) {
    if (error instanceof Fault) return fail(output, error.message)
    throw error
  }
}

async function act(parsed: Parsed, tools: ProviderCommandTools, output: Output): Promise<number> {
  const name = fullName(parsed.name)
  switch (parsed.action) {
    case 'list':
      return list(tools, parsed.json, output)
    case 'add':
      return add(parsed, tools, output)
    case 'rotate':
      return rotate(parsed, name, tools, output)
    case 'enable':
    case 'disable': {
      await enableProvider(tools, name, parsed.action === 'enable')
      return report(undefined, `${parsed.name} is ${parsed.action}d`, output)
    }
    case 'alarm': {
      await setAlarms(tools, name, parsed.alarm)
      return report(undefined, `${name}: ${alarmText(parsed.alarm)}`, output)
    }
    case 'remove': {
      await removeProvider(tools, name)
      return report(undefined, `${parsed.name} is removed; its events stay`, output)
    }
    default:
      throw new UsageError(`Unknown action "${parsed.action}"`)
  }
}

async function add(parsed: Parsed, tools: ProviderTools, output: Output): Promise<number> {
  const { trust_mode, secret, enable } = parsed
  const name = parsed.name.replace(/^generic:/, '')
  // The flag --open is itself the acknowledgement.
  const wanted = { name, trust_mode, secret, acknowledgeOpen: true, enabled: enable }
  const state = enable ? 'enabled' : `disabled; enable it with: gatehouse provider enable ${name}`
  return report(await createProvider(tools, wanted), `created, ${state}`, output)
}

async function rotate(
  { overlapSeconds, secret }: Parsed,
  name: string,
  tools: ProviderCommandTools,
  output: Output,
): Promise<number> {
  const overlap = overlapSeconds ?? tools.overlapSeconds
  const result = await rotateSecret(tools, name, { overlapSeconds: overlap, secret })
  const what = result.trust_mode === 'token' ? 'token' : 'secret'
  const old = overlap === 0 ? 'stops at once' : `is accepted as well for ${formatDuration(overlap)}`
  return report(result, `has a new ${what}; the old one ${old}`, output)
}

function alarmText({ expected_interval_s: interval, rejection_burst: burst }: AlarmChange): string {
  const said = []
  if (interval === null) said.push('silence raises no alarm')
  else if (interval !== undefined) said.push(`silent after ${formatDuration(interval)}`)
  if (burst === null) said.push('refusals raise no alarm')
  else if (burst !== undefined)
    said.push(`a burst is ${burst} ${burst === 1 ? 'refusal' : 'refusals'} in 5 minutes`)
  return said.join('; ')
}

/** `ci` and `generic:ci` mean the same provider; the signed ones have no prefix. */
function fullName(name: string): string {
  return isSignedProvider(name) || name.includes(':') ? name : `generic:${name}`
}

async function list(
  { db, secrets, now }: ProviderTools,
  json: boolean,
  output: Output,
): Promise<number> {
  const providers = await readProviders(db, now())
  const statuses = providers.map((provider) => providerStatus(provider, secrets))
  if (json) {
    output.out(JSON.stringify(statuses))
    return DONE
  }
  const rows = statuses.map((status) => [
    status.name,
    status.trust_mode,
    status.enabled ? 'enabled' : 'disabled',
    status.secret_status,
    status.path ?? status.channel ?? '',
  ])
  for (const line of table(['NAME', 'TRUST', 'STATE', 'SECRET', 'PATH'], rows)) output.out(line)
  return DONE
}

function report(result: MadeProvider | undefined, done: string, output: Output): number {
  output.err(result === undefined ? done : `${result.name} ${done}`)
  if (result !== undefined && result.token !== null) output.out(result.token)
  return DONE
}
