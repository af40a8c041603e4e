import { text } from 'node:stream/consumers'
import { Fault } from '../kernel/fault.ts'
import { numberOf, parseObject, stringOf } from '../kernel/json.ts'
import { post } from '../kernel/net/outbound.ts'
import { accepted } from '../kernel/variables.ts'
import { cleanText } from '../services/hooks/event-fields.ts'
import { receiverPath } from '../services/hooks/providers.ts'
import { parseTarget, TARGET_FORM } from '../services/hooks/outgoing.ts'
import { makeSample, type Sample } from '../services/hooks/sample.ts'
import { signDelivery } from '../services/hooks/schemes.ts'
import {
  configuredSecrets,
  isGenericName,
  isSignedProvider,
  SECRET_PREFIX,
  secretVariable,
  signingKey,
} from '../services/hooks/secrets.ts'
import { serviceUrl, type ConfigSource } from './configuration.ts'
import { command, UsageError, value, type ConfiguredTools } from './command.ts'
import { DONE, FAILED, type Output } from './output.ts'

const TIMEOUT_MS = 10_000
const MAX_REPLY_BYTES = 4_096
const NO_ADDRESS =
  'HOOKS_ADDR names no TCP port; give the URL of the receiver by --to or in HOOKS_BASE_URL'
const NOT_RUNNING = 'start the server with: gatehouse serve; or name another receiver by --to URL'

/** Says what the receiver replied, and where to look. */
export const commands = [
  command({
    name: 'send-sample',
    summary: 'send a made-up delivery, signed or with its token from standard input',
    args: {
      provider: value(
        'PROVIDER',
        'the provider whose delivery it is, such as code_host or ci',
        accepted('the name of a provider', readProvider),
      ),
    },
    flags: {
      to: value(
        'URL',
        'the receiver, unless it is that of the configured server',
        accepted(TARGET_FORM, parseTarget),
      ),
      'token-stdin': { summary: 'read the token or signing secret from standard input' },
    },
    needs: 'configuration',
    check({ args: { provider }, flags }) {
      if (isSignedProvider(provider) && flags['token-stdin']) {
        throw new UsageError(`${provider} is signed: it takes no token`)
      }
    },
    async run({ args: { provider }, flags }, tools) {
      const { output } = tools
      const url = flags.to ?? receiverOf(provider, tools.config)
      if (url === undefined) throw new Error(NO_ADDRESS)
      const at = tools.now()
      const sample = makeSample(provider, at, tools.random)
      const { type, headers, body } = sample
      const proof = await proofOf(provider, flags['token-stdin'], tools, sample, at)

      output.err(`sending ${type} to ${url.href}`)
      const result = await post({
        url,
        headers: { ...headers, ...proof },
        body,
        timeoutMs: TIMEOUT_MS,
        // The operator may connect to anything.
        trusted: true,
        answerBytes: MAX_REPLY_BYTES,
      })
      if (result.kind !== 'answered') {
        return fail(output, `no answer: ${result.reason}`, NOT_RUNNING)
      }
      return report(provider, url, result.status, result.body.toString('utf8'), output)
    },
  }),
]

/** The full name of a provider, such as `generic:ci`. */
function readProvider(name: string): string | undefined {
  if (isSignedProvider(name)) return name
  const generic = name.replace(/^generic:/, '')
  return isGenericName(generic) ? `generic:${generic}` : undefined
}

/**
 * The receiver of the server that this configuration is for; undefined without a fixed TCP port.
 */
function receiverOf(provider: string, config: ConfigSource): URL | undefined {
  const base = serviceUrl('hooks', config)
  return base === undefined ? undefined : new URL(receiverPath(provider), base)
}

/** The headers that prove that a delivery is the provider's own: a signature, a token, or none. */
async function proofOf(
  provider: string,
  tokenStdin: boolean,
  { config, random, input }: ConfiguredTools,
  { id, body }: Sample,
  at: Date,
): Promise<Readonly<Record<string, string>>> {
  if (isSignedProvider(provider)) {
    const [current] = configuredSecrets(config, random).of(provider)?.accepted ?? []
    if (current !== undefined) return signDelivery(provider, { id, body }, current, at)
    const what = `${secretVariable(provider)} is not set; give this command the server's secret`
    throw new Fault(422, 'NO_SECRET', what)
  }
  if (!tokenStdin) return {}
  const token = (await text(input)).trim()
  if (token === '') throw new Fault(422, 'NO_TOKEN', 'standard input holds no token')
  // A signing secret has this prefix, which no token has.
  const key = token.startsWith(SECRET_PREFIX) ? signingKey(token) : undefined
  return key === undefined
    ? { authorization: `Bearer ${token}` }
    : signDelivery('standard_webhooks', { id, body }, key, at)
}

/** Prints why the delivery has failed, and on a line of its own what may help. */
function fail(output: Output, problem: string, hint?: string): number {
  output.err(`gatehouse: ${problem}`)
  if (hint !== undefined) output.err(hint)
  return FAILED
}

function report(provider: string, url: URL, status: number, reply: string, output: Output): number {
  // Another program may reply with anything.
  const { id, detail } = parseObject(reply) ?? {}
  if (status >= 200 && status < 300) {
    output.out(`${status} ${cleanText(reply) ?? ''}`.trimEnd())
    if (numberOf(id) !== undefined) output.err(`see ${url.origin}/log/${numberOf(id)}`)
    return DONE
  }
  const problem = stringOf(detail)
  const why = cleanText(problem ?? reply)
  const hint = problem === undefined ? undefined : hintOf(provider, status)
  return fail(output, `refused with ${status}${why === null ? '' : `: ${why}`}`, hint)
}

/** What the operator can do when a receiver of Gatehouse refuses. */
function hintOf(provider: string, status: number): string | undefined {
  const name = provider.replace(/^generic:/, '')
  if (isSignedProvider(provider)) {
    const variable = secretVariable(provider)
    if (status === 401) return `start the server and this command with the same ${variable}`
    if (status === 404) return `start the server with ${variable} set`
  } else {
    if (status === 404) return `make it with: gatehouse provider add ${name} --enable`
    if (status === 403) {
      return `enable it with: gatehouse provider enable ${name}; its token or secret goes to standard input of: gatehouse send-sample ${name} --token-stdin`
    }
  }
  return status === 403 ? `enable it with: gatehouse provider enable ${name}` : undefined
}
