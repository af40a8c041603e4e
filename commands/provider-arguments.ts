import { DURATION_FORM, parseDuration } from '../kernel/time.ts'
import { BURST_FORM, INTERVAL_FORM, readBurst, readInterval } from '../services/hooks/alarms.ts'
import { MAX_OVERLAP_S, type AlarmChange } from '../services/hooks/providers.ts'
import { parseAction } from './action-arguments.ts'
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

const ARGUMENTS = {
  command: 'provider',
  flags: {
    open: { type: 'boolean' },
    signed: { type: 'boolean' },
    enable: { type: 'boolean' },
    json: { type: 'boolean' },
    secret: { type: 'string' },
    overlap: { type: 'string' },
    expect: { type: 'string' },
    burst: { type: 'string' },
    off: { type: 'boolean' },
  },
  takes: {
    add: ['open', 'signed', 'secret', 'enable'],
    list: ['json'],
    enable: [],
    disable: [],
    rotate: ['overlap', 'secret'],
    alarm: ['expect', 'burst', 'off'],
    remove: [],
  },
} as const

type Flags = ReturnType<typeof parseAction<typeof ARGUMENTS.flags>>['flags']

/** Reads the arguments of `provider`; throws `UsageError`. */
export function parseProvider(args: readonly string[]): Parsed {
  const { action, name, flags } = parseAction(args, ARGUMENTS)
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
 * The arguments with the secret from standard input where `--secret -` or `--secret=-` stands: other users
 * of the machine can see arguments.
 */
export async function withSecretFromInput(
  argv: readonly string[],
  readInput: () => Promise<string>,
): Promise<readonly string[]> {
  const at = argv.findIndex(
    (word, i) => word === '--secret=-' || (word === '--secret' && argv[i + 1] === '-'),
  )
  if (argv[0] !== 'provider' || at < 0) return argv
  const secret = (await readInput()).trim()
  return argv.toSpliced(at, argv[at] === '--secret' ? 2 : 1, `--secret=${secret}`)
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
  if (seconds === undefined || seconds > MAX_OVERLAP_S)
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
