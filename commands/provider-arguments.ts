import { parseArgs } from 'node:util'
import type { AlarmChange } from '../db/hooks/providers.ts'
import { DURATION_FORM, parseDuration } from '../kernel/duration.ts'
import { BURST_FORM, INTERVAL_FORM, readBurst, readInterval } from '../services/hooks/alarm-form.ts'
import { LONGEST_OVERLAP } from '../services/hooks/providers.ts'
import { UsageError } from './command.ts'

/** The arguments of `provider`; what an action does not take is absent. */
export interface Parsed {
  readonly action: string
  readonly name: string
  readonly trust_mode: 'token' | 'signed' | 'open'
  readonly enable: boolean
  readonly json: boolean
  readonly secret: string | undefined
  /** Undefined for the configured one. */
  readonly overlapSeconds: number | undefined
  readonly alarm: AlarmChange
}

const FLAGS = {
  open: { type: 'boolean' },
  signed: { type: 'boolean' },
  enable: { type: 'boolean' },
  json: { type: 'boolean' },
  secret: { type: 'string' },
  overlap: { type: 'string' },
  expect: { type: 'string' },
  burst: { type: 'string' },
  off: { type: 'boolean' },
} as const

type Flags = {
  [Name in keyof typeof FLAGS]?: (typeof FLAGS)[Name]['type'] extends 'string' ? string : boolean
}

/** Which flags each action takes. */
const TAKES: Readonly<Record<string, readonly string[]>> = {
  add: ['open', 'signed', 'secret', 'enable'],
  list: ['json'],
  enable: [],
  disable: [],
  rotate: ['overlap', 'secret'],
  alarm: ['expect', 'burst', 'off'],
  remove: [],
}

/** Reads the arguments of `provider`; throws `UsageError`. */
export function parseProvider(args: readonly string[]): Parsed {
  const { positionals, flags } = split(args)
  const [action = '', name = '', ...rest] = positionals
  if (action === '') throw new UsageError('Missing action')
  const takes = TAKES[action]
  if (takes === undefined) throw new UsageError(`Unknown action "${action}"`)
  const extra = Object.keys(flags).find((flag) => !takes.includes(flag))
  if (extra !== undefined) throw new UsageError(`"provider ${action}" takes no --${extra}`)
  if (rest.length > 0 || (action === 'list' && name !== ''))
    throw new UsageError('Too many arguments')
  if (action !== 'list' && name === '') throw new UsageError('Missing NAME')
  return {
    action,
    name,
    trust_mode: readTrust(flags, action),
    enable: flags.enable === true,
    json: flags.json === true,
    secret: flags.secret,
    overlapSeconds: flags.overlap === undefined ? undefined : readOverlap(flags.overlap),
    alarm: readAlarm(flags, action),
  }
}

/**
 * The arguments with the secret from standard input where `--secret -` stands: other users of the
 * machine can see arguments.
 */
export async function withSecretFromInput(
  argv: readonly string[],
  readInput: () => Promise<string>,
): Promise<readonly string[]> {
  const at = argv.indexOf('--secret')
  if (argv[0] !== 'provider' || at < 0 || argv[at + 1] !== '-') return argv
  return argv.with(at + 1, (await readInput()).trim())
}

function split(args: readonly string[]): { positionals: readonly string[]; flags: Flags } {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      options: FLAGS,
      allowPositionals: true,
    })
    return { positionals, flags: values }
  } catch (error) {
    // TypeError: an unknown flag, one with a value that takes none, or one without its value.
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function readTrust({ open, signed, secret }: Flags, action: string): Parsed['trust_mode'] {
  if (open === true && signed === true)
    throw new UsageError('--open and --signed exclude each other')
  if (action === 'add' && secret !== undefined && signed !== true)
    throw new UsageError('--secret is for --signed: a token is made here')
  if (signed === true) return 'signed'
  return open === true ? 'open' : 'token'
}

function readOverlap(text: string): number {
  const seconds = parseDuration(text)
  if (seconds === undefined || seconds > LONGEST_OVERLAP)
    throw new UsageError(`--overlap must be ${DURATION_FORM}, 30d at most; 0 for none`)
  return seconds
}

function readAlarm({ expect, burst, off }: Flags, action: string): AlarmChange {
  if (action !== 'alarm') return {}
  if (off === true) {
    if (expect !== undefined || burst !== undefined)
      throw new UsageError('--off turns both alarms off and takes no other flag')
    return { expected_interval_s: null, rejection_burst: null }
  }
  if (expect === undefined && burst === undefined)
    throw new UsageError('Missing --expect, --burst or --off')
  const interval = expect === undefined ? undefined : readInterval(expect)
  const count = burst === undefined ? undefined : readBurst(burst)
  if (interval === 'invalid') throw new UsageError(`--expect must be ${INTERVAL_FORM}`)
  if (count === 'invalid') throw new UsageError(`--burst must be ${BURST_FORM}`)
  return {
    ...(interval !== undefined && { expected_interval_s: interval }),
    ...(count !== undefined && { rejection_burst: count }),
  }
}
