import { parseArgs } from 'node:util'
import type { Database } from '../db/client.ts'
import { listProviders } from '../db/hooks/providers.ts'
import { providerStatus } from '../services/hooks/provider-status.ts'
import {
  createProvider,
  deleteProvider,
  rotateProvider,
  setProviderEnabled,
  type MadeProvider,
  type ProviderRefusal,
  type RandomBytes,
} from '../services/hooks/providers.ts'
import { isSignedProvider, type SigningSecrets } from '../services/hooks/signing-secrets.ts'
import { recentSince } from '../services/hooks/status.ts'
import { DONE, FAILED, table, UsageError, type Output } from './command.ts'

export const PROVIDER_USAGE =
  'gatehouse provider add NAME [--open] [--enable] | list [--json] | enable NAME | disable NAME | rotate NAME | remove NAME'

/** What the command works on: its own database, or that of the server that runs it. */
export interface ProviderTools {
  readonly db: Database
  readonly secrets: SigningSecrets
  readonly random: RandomBytes
  readonly now: () => Date
}

/**
 * `gatehouse provider …`: the same in a process of its own and inside the server. A token that it
 * makes is the last line of stdout, alone.
 */
export async function runProvider(
  args: readonly string[],
  tools: ProviderTools,
  output: Output,
): Promise<number> {
  const { action, name, flags } = parseProvider(args)
  const { db, random } = tools
  switch (action) {
    case 'list':
      return list(tools, flags.json === true, output)
    case 'add': {
      const trust_mode = flags.open === true ? 'open' : 'token'
      const enabled = flags.enable === true
      const wanted = {
        name: name.replace(/^generic:/, ''),
        trust_mode,
        acknowledgeOpen: true,
        enabled,
      } as const
      const state = enabled
        ? 'enabled'
        : `disabled; enable it with: gatehouse provider enable ${wanted.name}`
      return report(await createProvider(db, random, wanted), `created, ${state}`, output)
    }
    case 'rotate':
      return report(await rotateProvider(db, random, fullName(name)), 'has a new token', output)
    case 'enable':
    case 'disable':
      return report(
        await setProviderEnabled(db, fullName(name), action === 'enable'),
        `${name} is ${action}d`,
        output,
      )
    case 'remove':
      return report(
        await deleteProvider(db, fullName(name)),
        `${name} is removed; its events stay`,
        output,
      )
    default:
      throw new UsageError(`Unknown action "${action}"`)
  }
}

/** The arguments of `provider`. */
export interface Parsed {
  readonly action: string
  readonly name: string
  readonly flags: { readonly open?: boolean; readonly enable?: boolean; readonly json?: boolean }
}

const FLAGS = {
  open: { type: 'boolean' },
  enable: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

const ACTIONS = ['add', 'list', 'enable', 'disable', 'rotate', 'remove']

/** Which flags each action takes. */
const TAKES: Readonly<Record<string, readonly string[]>> = {
  add: ['open', 'enable'],
  list: ['json'],
}

/** Reads the arguments of `provider`; throws `UsageError`. */
export function parseProvider(args: readonly string[]): Parsed {
  let parsed
  try {
    parsed = parseArgs({ args: [...args], options: FLAGS, allowPositionals: true })
  } catch (error) {
    // TypeError: an unknown flag, or one with a value that takes none.
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
  const [action = '', name = '', ...rest] = parsed.positionals
  if (action === '') throw new UsageError('Missing action')
  if (!ACTIONS.includes(action)) throw new UsageError(`Unknown action "${action}"`)
  const extra = Object.keys(parsed.values).find((flag) => !(TAKES[action] ?? []).includes(flag))
  if (extra !== undefined) throw new UsageError(`"provider ${action}" takes no --${extra}`)
  if (rest.length > 0 || (action === 'list' && name !== ''))
    throw new UsageError('Too many arguments')
  if (action !== 'list' && name === '') throw new UsageError('Missing NAME')
  return { action, name, flags: parsed.values }
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
  const providers = await listProviders(db, recentSince(now()))
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

function report(
  result: MadeProvider | ProviderRefusal | undefined,
  done: string,
  output: Output,
): number {
  if (result !== undefined && 'code' in result) {
    output.err(`gatehouse: ${result.message}`)
    return FAILED
  }
  output.err(result === undefined ? done : `${result.name} ${done}`)
  if (result !== undefined && result.token !== null) output.out(result.token)
  return DONE
}
