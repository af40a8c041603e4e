import { resolve } from 'node:path'
import Type from 'typebox'
import { parseAddress, type Address, parseHosts } from './net/addresses.ts'
import {
  parseAmount,
  parseBaseUrl,
  parseChannels,
  parseCommand,
  parseDatabaseUrl,
  parseHeaderName,
  parseKeyword,
  parseModelUrl,
  parseName,
  parseNotifyUrl,
  parseProxies,
  parseQueueUrl,
  parseRunner,
  parseSeconds,
  parseSecretKey,
  parseSize,
  parseSwitch,
  parseTier,
} from './variable-readings.ts'

/** How a variable's text is read: `form` says in words what is accepted; a read throws SyntaxError. */
interface Reading<T> {
  readonly form: string
  readonly read: (text: string) => T
  /** A secret may also come from a systemd credential and never from a flag. */
  readonly secret?: true
  /** Its flag where a contract names another one than the variable's own name. */
  readonly flag?: string
  readonly default?: string
}

function variable<T>({ read, ...notes }: Reading<T>): Type.TCodec<Type.TString, T> {
  return Type.Codec(Type.String(notes)).Decode(read).Encode(String)
}

const secret = (form: string): Type.TOptional<Type.TCodec<Type.TString, string>> =>
  Type.Optional(variable({ form, secret: true, read: (text) => text }))

const address = (fallback: string): Type.TCodec<Type.TString, Address> =>
  variable({ form: 'host:port, unix:/path or fd:NAME', read: parseAddress, default: fallback })

const baseUrl = Type.Optional(
  variable({ form: 'an http:// or https:// URL without a path', read: parseBaseUrl }),
)

const model = variable({ form: 'the name of a model', read: parseName, default: 'default' })
const folder = Type.Optional(variable({ form: 'a folder', read: (text) => resolve(text) }))
const days = (fallback: string): Type.TCodec<Type.TString, number> =>
  variable({
    form: 'a whole number of days from 0 (kept for ever) to 36500',
    read: (text) => parseSeconds(text, 0, 36_500),
    default: fallback,
  })
const budget = Type.Optional(variable({ form: 'an amount such as 2.50', read: parseAmount }))

/**
 * Every variable of the program (decisions.md section 1). The name in lower case with dashes, without
 * `GATEHOUSE_`, is its flag: `HOOKS_ADDR` is `--hooks-addr`, `GATEHOUSE_DATA_DIR` is `--data-dir`.
 */
export const Variables = Type.Object({
  DATABASE_URL: Type.Optional(
    variable({
      form: 'a postgres:// URL; unset for the embedded database',
      secret: true,
      read: parseDatabaseUrl,
    }),
  ),
  GATEHOUSE_DATA_DIR: variable({
    form: 'a folder',
    read: (text) => resolve(text),
    default: './data',
  }),
  HOOKS_ADDR: address('127.0.0.1:8080'),
  LINKS_ADDR: address('127.0.0.1:8081'),
  OPS_ADDR: address('127.0.0.1:8082'),
  HOOKS_BASE_URL: baseUrl,
  LINKS_BASE_URL: baseUrl,
  OPS_BASE_URL: baseUrl,
  GATEHOUSE_TRUSTED_PROXIES: Type.Optional(
    variable({ form: 'a comma-separated list of CIDR blocks', read: parseProxies }),
  ),
  GATEHOUSE_USER_HEADER: variable({
    form: 'the name of a request header',
    read: parseHeaderName,
    default: 'Remote-Email',
  }),
  OPS_CHAT_API_KEY: secret('the bearer token of the alert webhook and the chat API'),
  OPS_WEBHOOK_MODEL: Type.Optional(
    variable({ form: 'the name of a model', flag: 'webhook-model', read: parseName }),
  ),
  OPS_WEBHOOK_SYSTEM_PROMPT: Type.Optional(
    variable({ form: 'a prompt', flag: 'webhook-system-prompt', read: (text) => text }),
  ),
  OPS_MODEL_URL: Type.Optional(
    variable({ form: 'an http:// or https:// URL that ends in /v1', read: parseModelUrl }),
  ),
  OPS_MODEL_KEY: secret('the key of the model endpoint'),
  OPS_TIER1_MODEL: model,
  OPS_TIER2_MODEL: model,
  OPS_TIER3_MODEL: model,
  OPS_INTERVAL: variable({
    form: 'a whole number of seconds from 1',
    read: (text) => parseSeconds(text, 1, 2_147_483_647),
    default: '3600',
  }),
  OPS_MAX_TIER: variable({ form: '1, 2 or 3', read: parseTier, default: '3' }),
  OPS_DRY_RUN: variable({ form: 'true or false', read: parseSwitch, default: 'false' }),
  OPS_STATE_DIR: folder,
  OPS_RESULTS_DIR: folder,
  OPS_REPOS_DIR: folder,
  OPS_RUNNER: variable({ form: 'auto, probe, model or cli', read: parseRunner, default: 'auto' }),
  OPS_AGENT_COMMAND: variable({
    form: 'a command and its arguments, without shell syntax, with double quotes around words that have spaces',
    read: parseCommand,
    default: 'claude',
  }),
  OPS_INVENTORY: Type.Optional(variable({ form: 'a JSON file', read: (text) => resolve(text) })),
  OPS_PRICES: Type.Optional(variable({ form: 'a JSON file', read: (text) => resolve(text) })),
  OPS_SESSION_BUDGET_USD: budget,
  OPS_DAY_BUDGET_USD: budget,
  OPS_UNSANDBOXED: variable({ form: 'true or false', read: parseSwitch, default: 'false' }),
  OPS_MAX_TURNS: variable({
    form: 'a whole number from 1 to 1000',
    read: (text) => parseSeconds(text, 1, 1_000),
    default: '40',
  }),
  OPS_RETENTION_DAYS: days('90'),
  OPS_LINES_RETENTION_DAYS: days('30'),
  OPS_NOTIFY_URL: Type.Optional(
    variable({
      form: 'an http:// or https:// URL for notices as JSON, or ntfy+https://HOST/TOPIC',
      secret: true,
      read: parseNotifyUrl,
    }),
  ),
  HOOKS_CODE_HOST_SECRET: secret('the shared secret, the whole value'),
  HOOKS_CODE_HOST_SECRET_PREVIOUS: secret('the secret being retired'),
  HOOKS_PAYMENTS_SECRET: secret('the shared secret, the whole value'),
  HOOKS_PAYMENTS_SECRET_PREVIOUS: secret('the secret being retired'),
  HOOKS_CHAT_SECRET: secret('the shared secret, the whole value'),
  HOOKS_CHAT_SECRET_PREVIOUS: secret('the secret being retired'),
  GATEHOUSE_SECRET_KEY: Type.Optional(
    variable({
      form: '32 bytes as base64, as openssl rand -base64 32 prints them',
      secret: true,
      read: parseSecretKey,
    }),
  ),
  HOOKS_ROTATION_OVERLAP_S: variable({
    form: 'a whole number of seconds from 0 (the old secret stops at once) to 2592000',
    read: (text) => parseSeconds(text, 0, 2_592_000),
    default: '86400',
  }),
  HOOKS_MAX_BODY: variable({
    form: 'a size from 1 to 100 MiB, such as 25MiB, 512KiB or 1000',
    read: parseSize,
    default: '25MiB',
  }),
  HOOKS_FRESHNESS_S: variable({
    form: 'a whole number of seconds from 1 to 86400',
    read: (text) => parseSeconds(text, 1, 86_400),
    default: '300',
  }),
  HOOKS_REPLAY_TARGETS: Type.Optional(
    variable({ form: 'a comma-separated list of host or host:port', read: parseHosts }),
  ),
  HOOKS_QUEUE_URL: Type.Optional(
    variable({
      form: 'a redis:// or rediss:// URL',
      secret: true,
      read: parseQueueUrl,
    }),
  ),
  HOOKS_QUEUE_CHANNELS: Type.Optional(
    variable({
      form: 'a comma-separated list of stream names without spaces, 200 characters each at most',
      read: parseChannels,
    }),
  ),
  LINKS_SHORT_KEYWORD: Type.Optional(
    variable({ form: 'a host name such as go', read: parseKeyword }),
  ),
})
export type Config = Type.StaticDecode<typeof Variables>
export type VariableName = keyof Config

/** The notes that a variable's schema carries beside its type. */
export interface VariableNotes {
  readonly form: string
  readonly secret?: true
  readonly flag?: string
  readonly default?: string
}

/** The flag of a variable, without the dashes in front. */
export function flagOf(name: VariableName): string {
  const { flag } = Variables.properties[name] as unknown as VariableNotes
  return (flag ?? name.replace(/^GATEHOUSE_/, '').replaceAll('_', '-')).toLowerCase()
}
