import { DURATION_FORM } from '../../kernel/time.ts'
import { accepted, type Reading } from '../../kernel/variables.ts'
import { recoveryQueries } from '../../db/hooks/receive/recoveries.ts'
import { get, post } from '../../kernel/net/outbound.ts'
import { readBound } from '../../services/hooks/log/events/filter.ts'
import type { Found } from '../../services/hooks/receive/recoveries/found.ts'
import {
  countsOf,
  describeCount,
  lookAt,
} from '../../services/hooks/receive/recoveries/recoveries.ts'
import {
  API_URL,
  API_URLS,
  githubSource,
  STRIPE,
  TARGET_FORM,
  type Source,
} from '../../services/hooks/receive/recoveries/sources.ts'
import {
  command,
  JSON_FLAG,
  secretFlag,
  UsageError,
  value,
  type DatabaseTools,
} from '../frame/command.ts'
import { serviceUrl, type ConfigSource } from '../frame/configuration.ts'
import { DONE, FAILED, printRows, type Output } from '../frame/output.ts'

const TARGET = accepted(TARGET_FORM, githubSource)
const SINCE_FORM = `a time such as 2026-01-31T12:00:00Z, or ${DURATION_FORM}`

/** A duration counts back from now, which is not known yet. */
const SINCE: Reading<string> = accepted(SINCE_FORM, (text) =>
  instantOf(text, new Date()) === undefined ? undefined : text,
)

const FLAGS = {
  token: secretFlag('the token of the API'),
  since: value('TIME', 'only what failed since, such as 24h', SINCE),
  api: value('URL', 'where the API is, such as https://HOST/api/v3', API_URL),
  json: JSON_FLAG,
}

/** `gatehouse recover …`: it fails when something was not looked up, or not asked for. */
export const commands = [
  command({
    name: 'recover github',
    summary: 'ask GitHub to redeliver what a webhook failed to deliver here',
    args: { target: value('OWNER/REPO|ORG', 'a repository or an organization', TARGET) },
    flags: { ...FLAGS, 'dry-run': { summary: 'list it, and ask for nothing' } },
    needs: 'database',
    check: ({ flags }) => void requireToken(flags.token),
    run: ({ args, flags }, tools) =>
      recover(args.target, { ...flags, isDryRun: flags['dry-run'] }, tools),
  }),
  command({
    name: 'recover stripe',
    summary: 'list the events that Stripe did not deliver, and how it resends them',
    flags: FLAGS,
    needs: 'database',
    check: ({ flags }) => void requireToken(flags.token),
    run: ({ flags }, tools) => recover(STRIPE, { ...flags, isDryRun: false }, tools),
  }),
]

function requireToken(token: string | undefined): string {
  if (token !== undefined && /^[\x21-\x7e]{1,500}$/.test(token)) return token
  throw new UsageError('--token must be a file with the token of the API, or - for standard input')
}

function instantOf(text: string, now: Date): Date | undefined {
  const bound = readBound(text, now)
  return bound !== undefined && 'time' in bound ? bound.time : undefined
}

function apiOf({ sender }: Source, { current }: ConfigSource): URL {
  return sender === 'github' ? current.HOOKS_RECOVER_GITHUB_API : new URL(API_URLS.stripe)
}

interface Options {
  token: string | undefined
  since: string | undefined
  api: URL | undefined
  json: boolean
  isDryRun: boolean
}

async function recover(
  source: Source,
  { token, since, api, json, isDryRun }: Options,
  { db, now, config, addresses, output }: DatabaseTools,
): Promise<number> {
  const found = await lookAt(
    { db, now, get, post },
    {
      source,
      isDryRun,
      token: requireToken(token),
      url: api ?? apiOf(source, config),
      baseUrl: serviceUrl('hooks', config, addresses) ?? '',
      since: since === undefined ? undefined : instantOf(since, now()),
      maxRefusals: Number.MAX_SAFE_INTEGER,
      signal: new AbortController().signal,
    },
  )
  const { problem } = found
  const counts = countsOf(found)
  if (!isDryRun) {
    await recoveryQueries.saveRecovery(db, { source: source.name, wait_ms: null, problem, counts })
  }
  print(output, json, found)
  const isDone = problem === null && (isDryRun || counts.every(({ left }) => left === 0))
  return isDone ? DONE : FAILED
}

function print(output: Output, json: boolean, found: Found): void {
  const { deliveries, problem, advice } = found
  printRows(output, json, deliveries, {
    PROVIDER: ({ provider }) => provider,
    DELIVERY: ({ id }) => id,
    TYPE: ({ type }) => type,
    FAILED: ({ at }) => at,
    STATUS: ({ status }) => status,
    OUTCOME: ({ outcome }) => outcome,
  })
  for (const count of countsOf(found)) output.err(`${count.provider}: ${describeCount(count)}`)
  for (const line of advice) output.err(line)
  if (problem !== null) output.err(`gatehouse: ${problem}`)
}
