import {
  anyText,
  integer,
  oneOf,
  readWebUrl,
  trueOrFalse,
  address,
  baseUrl,
  path,
  secret,
  type Variables,
} from '../../kernel/variables.ts'
import { ADDRESS_FORM, readAddresses } from '../notices/address.ts'

const modelName = { form: 'the name of a model', counts: 'at once', read: readModelName } as const
const tierModel = { ...modelName, default: 'default' }
const folder = { ...path('a folder'), counts: 'from the next start' } as const
const silence = { ...integer({ min: 1, max: 1_800, of: 'seconds' }), counts: 'at once' } as const
const jsonFile = { ...path('a JSON file'), counts: 'at once' } as const
const days = {
  ...integer({ min: 0, max: 36_500 }),
  form: 'a whole number of days from 0 (kept for ever) to 36500',
  counts: 'at once',
} as const
const budget = {
  form: 'an amount such as 2.50',
  counts: 'at once',
  read(text: string) {
    if (!/^\d{1,7}(\.\d{1,4})?$/.test(text)) throw new SyntaxError('it is no amount')
    return Number(text)
  },
} as const

function seconds(max: number) {
  return { ...integer({ min: 0, max, of: 'seconds' }), counts: 'at once' } as const
}

/** The variables of the ops service. */
export const opsVariables = {
  OPS_ADDR: address('127.0.0.1:8082'),
  OPS_BASE_URL: baseUrl,
  OPS_CHAT_API_KEY: secret('the bearer token of the alert webhook and the chat API'),
  OPS_WEBHOOK_MODEL: { ...modelName, flag: 'webhook-model' },
  OPS_WEBHOOK_SYSTEM_PROMPT: {
    ...anyText('a prompt'),
    counts: 'at once',
    flag: 'webhook-system-prompt',
  },
  OPS_BRIEF_FALLBACK: { ...trueOrFalse, counts: 'at once', default: 'false' },
  OPS_ALERT_HOLD_S: { ...seconds(86_400), default: '0' },
  OPS_ALERT_DEDUP_S: { ...seconds(7 * 86_400), default: '0' },
  OPS_ALERT_QUEUE: { ...trueOrFalse, counts: 'at once', default: 'false' },
  OPS_MODEL_URL: {
    form: 'an http:// or https:// URL that ends in /v1',
    counts: 'at once',
    read: readModelUrl,
  },
  OPS_MODEL_KEY: secret('the key of the model endpoint'),
  OPS_TIER1_MODEL: tierModel,
  OPS_TIER2_MODEL: tierModel,
  OPS_TIER3_MODEL: tierModel,
  OPS_INTERVAL: {
    ...integer({ min: 1, max: 2_147_483_647, of: 'seconds' }),
    counts: 'at once',
    default: '3600',
  },
  OPS_MAX_TIER: { ...integer({ min: 1, max: 3 }), counts: 'at once', default: '3' },
  OPS_ALERT_MAX_TIER: { ...integer({ min: 1, max: 3 }), counts: 'at once' },
  OPS_DRY_RUN: { ...trueOrFalse, counts: 'at once', default: 'false' },
  OPS_STATE_DIR: folder,
  OPS_RESULTS_DIR: folder,
  OPS_REPOS_DIR: folder,
  OPS_RUNNER: {
    ...oneOf('auto', 'probe', 'model', 'cli'),
    counts: 'at once',
    default: 'auto',
  },
  OPS_AGENT_COMMAND: {
    form:
      'a command and its arguments, without shell syntax, ' +
      'with double quotes around words that have spaces',
    counts: 'at once',
    read: readCommand,
    default: 'claude',
  },
  OPS_INVENTORY: jsonFile,
  OPS_RUNBOOKS: { ...path('a folder'), counts: 'at once' },
  OPS_PRICES: jsonFile,
  OPS_SESSION_BUDGET_USD: budget,
  OPS_DAY_BUDGET_USD: budget,
  OPS_UNSANDBOXED: { ...trueOrFalse, counts: 'at once', default: 'false' },
  OPS_MAX_TURNS: {
    ...integer({ min: 1, max: 1_000 }),
    counts: 'at once',
    default: '40',
  },
  OPS_FIRST_OUTPUT_S: { ...silence, default: '60' },
  OPS_IDLE_S: { ...silence, default: '180' },
  OPS_RETENTION_DAYS: { ...days, default: '90' },
  OPS_LINES_RETENTION_DAYS: { ...days, default: '30' },
  OPS_INVESTIGATE_COOLDOWN_S: {
    ...integer({ min: 0, max: 604_800, of: 'seconds' }),
    counts: 'at once',
    default: '3600',
  },
  OPS_STATUS_SERVICES: {
    form: 'a comma-separated list of services that the page /status shows to anybody',
    counts: 'at once',
    read: readNames,
  },
  OPS_NOTIFY_URL: {
    form: `${ADDRESS_FORM}; several with spaces between them`,
    counts: 'at once',
    secret: true,
    read: readAddresses,
  },
} satisfies Variables

/** What is wrong with the name of a model. */
export function nameProblem(text: string): string | undefined {
  if (text.trim() === '' || text.length > 200) return 'must have 1 to 200 characters'
  if (/\p{Cc}/u.test(text)) return 'must have no control characters'
  // A headless agent is given it as an argument, and might take it for one of its flags.
  return text.startsWith('-') ? 'must not begin with -' : undefined
}

function readModelName(text: string): string {
  const problem = nameProblem(text)
  if (problem !== undefined) throw new SyntaxError(`it ${problem}`)
  return text
}

function readModelUrl(text: string): string {
  const url = readWebUrl(text)
  // Requests append to it: a ? or a # would swallow their path.
  if (!/\/v1\/?$/.test(url.pathname) || /[?#]/.test(url.href)) {
    throw new SyntaxError('it has another end, a ? or a #')
  }
  return url.href.replace(/\/$/, '')
}

function readNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.some((name) => name === '')) throw new SyntaxError('a name in it is empty')
  return names
}

/** Words between spaces; double quotes around a whole word keep its spaces. */
function readCommand(text: string): readonly string[] {
  if (!/^\s*((?:"[^"]*"|[^\s"]+)(?:\s+|$))*$/.test(text)) {
    throw new SyntaxError('a quote in it is not closed, or stands within a word')
  }
  const words = [...text.matchAll(/"([^"]*)"|[^\s"]+/g)].map(([word, quoted]) => quoted ?? word)
  if (words.length === 0) throw new SyntaxError('it is empty')
  return words
}
