import { text } from 'node:stream/consumers'
import type { Provider } from '../../db/hooks/receive/providers.ts'
import { Fault } from '../../kernel/fault.ts'
import { numberOf, parseObject, stringOf } from '../../kernel/json.ts'
import { post, type OutboundResult } from '../../kernel/net/outbound.ts'
import { accepted } from '../../kernel/variables.ts'
import { cleanText } from '../../services/hooks/receive/deliveries/fields.ts'
import { receiverPath } from '../../services/hooks/receive/providers/providers.ts'
import { parseTarget, TARGET_FORM } from '../../services/hooks/send/replays/outgoing.ts'
import { makeSample, type Sample } from '../../services/hooks/receive/schemes/sample.ts'
import { secretForm } from '../../services/hooks/receive/schemes/describe.ts'
import { keyOf, SECRET_PREFIX } from '../../services/hooks/receive/schemes/keys.ts'
import {
  BUILT_IN,
  presetNamed,
  schemeNamed,
  schemeOf,
} from '../../services/hooks/receive/schemes/schemes.ts'
import {
  isGenericName,
  isSignedProvider,
} from '../../services/hooks/receive/schemes/provider-names.ts'
import {
  configuredSecrets,
  secretVariable,
} from '../../services/hooks/receive/schemes/configured-secrets.ts'
import { isSignable, signDelivery } from '../../services/hooks/receive/schemes/signing.ts'
import { serviceUrl } from '../frame/configuration.ts'
import { command, UsageError, value, type ConfiguredTools } from '../frame/command.ts'
import { DONE, FAILED, type Output } from '../frame/output.ts'
import { ROW_FLAGS, rowOf, SCHEME_FLAG } from './scheme-flags.ts'

const TIMEOUT_MS = 10_000
const MAX_REPLY_BYTES = 4_096
const NO_ADDRESS =
  'HOOKS_ADDR names no TCP port; give the URL of the receiver by --to or in HOOKS_BASE_URL'
const NOT_RUNNING = 'start the server with: gatehouse serve; or name another receiver by --to URL'

/** The server encrypts such a secret: this command can't read it. */
const FROM_PAGE = 'a secret that was set on the page goes to standard input, with --token-stdin'

/** Says what the receiver replied, and where to look. */
export const commands = [
  command({
    name: 'send-sample',
    summary: 'send a made-up delivery, signed or with its token from standard input',
    args: {
      provider: value(
        'PROVIDER',
        'the provider, such as code_host or ci',
        accepted('the name of a provider', readProvider),
      ),
    },
    flags: {
      to: value(
        'URL',
        'the receiver, else the configured server',
        accepted(TARGET_FORM, parseTarget),
      ),
      'token-stdin': { summary: 'read the token or secret from standard input' },
      scheme: SCHEME_FLAG,
      ...ROW_FLAGS,
    },
    needs: 'configuration',
    check({ args: { provider }, flags }) {
      const { scheme, 'token-stdin': stdin } = flags
      if (isSignedProvider(provider) && scheme !== undefined) {
        throw new UsageError(`${provider} has a scheme of its own: it takes no --scheme`)
      }
      const signs = schemeNamed(scheme ?? null)
      if (signs !== undefined && !isSignable(signs)) {
        throw new UsageError(`--scheme ${scheme}: only its sender can sign`)
      }
      if (scheme !== undefined && !stdin) {
        throw new UsageError('--scheme needs --token-stdin: the secret to sign with')
      }
      rowOf(scheme, flags)
    },
    async run({ args: { provider }, flags }, tools) {
      const { output } = tools
      // Of the server that this configuration is for, if that has a fixed TCP port.
      const base = serviceUrl('hooks', tools.config)
      if (flags.to === undefined && base === undefined) throw new Error(NO_ADDRESS)
      const url = flags.to ?? new URL(receiverPath(provider), base)
      const at = tools.now()
      const scheme = isSignedProvider(provider) ? BUILT_IN[provider] : (flags.scheme ?? null)
      const sender = { provider, scheme, scheme_row: rowOf(flags.scheme, flags) }
      const sample = makeSample(sender, at, tools.random)
      const { type, headers, body } = sample
      const proof = await proofOf(sender, flags['token-stdin'], tools, sample, at)

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
      return report(provider, url, result, output)
    },
  }),
]

/** The full name of a provider, such as `generic:ci`. */
function readProvider(name: string) {
  if (isSignedProvider(name)) return name
  const generic = name.replace(/^generic:/, '')
  return isGenericName(generic) ? `generic:${generic}` : undefined
}

/** Who sends, and how it signs. */
interface Sender extends Pick<Provider, 'scheme' | 'scheme_row'> {
  provider: string
}

/** The headers that prove that a delivery is the provider's own: a signature, a token, or none. */
async function proofOf(
  sender: Sender,
  tokenStdin: boolean,
  { config, random, input }: ConfiguredTools,
  { id, body }: Sample,
  at: Date,
) {
  const { provider } = sender
  const scheme = schemeOf(sender)
  if (isSignedProvider(provider) && scheme !== undefined && !tokenStdin) {
    const secrets = configuredSecrets(config, random)
    const [current] = secrets.of(provider)?.accepted ?? []
    if (current !== undefined) return signDelivery(scheme, { id, body }, current, at)
    throw new Fault(422, 'NO_SECRET', `${secretVariable(provider)} is not set; ${FROM_PAGE}`)
  }
  if (!tokenStdin) return {}
  const secret = (await text(input)).trim()
  if (secret === '') throw new Fault(422, 'NO_TOKEN', 'standard input holds no token')
  const known = presetNamed(sender.scheme)?.scheme
  const [header] = known !== undefined && 'token' in known ? known.token : []
  if (header !== undefined) return { [header]: secret }
  // Without a scheme, a secret of Standard Webhooks has this prefix, which no token has.
  const name = sender.scheme ?? (secret.startsWith(SECRET_PREFIX) ? 'standard' : null)
  const signs = scheme ?? schemeNamed(name ?? '')
  if (signs === undefined) return { authorization: `Bearer ${secret}` }
  const key = keyOf(name, secret)
  if (key !== undefined) return signDelivery(signs, { id, body }, key, at)
  throw new Fault(422, 'WRONG_SECRET', `the secret must be ${secretForm(name)}`)
}

/** Prints why the delivery has failed, and on a line of its own what may help. */
function fail(output: Output, problem: string, hint?: string) {
  output.err(`gatehouse: ${problem}`)
  if (hint !== undefined) output.err(hint)
  return FAILED
}

type Answer = Extract<OutboundResult, { kind: 'answered' }>

function report(provider: string, url: URL, answer: Answer, output: Output) {
  const { status } = answer
  const reply = answer.body.toString('utf8')
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
  const refused = `refused with ${status}`
  return fail(output, why === null ? refused : `${refused}: ${why}`, hint)
}

/** What the operator can do when a receiver of Gatehouse refuses. */
function hintOf(provider: string, status: number) {
  const name = provider.replace(/^generic:/, '')
  const enable = `enable it with: gatehouse provider enable ${name}`
  if (isSignedProvider(provider)) {
    const variable = secretVariable(provider)
    if (status === 401) return `give this command the server's ${variable}; ${FROM_PAGE}`
    if (status === 404) return `set its secret on the page of providers, or start with ${variable}`
    return status === 403 ? enable : undefined
  }
  if (status === 404) return `make it with: gatehouse provider add ${name} --enable`
  if (status !== 403) return undefined
  const command = `gatehouse send-sample ${name} --token-stdin`
  const where = 'its token or secret goes to standard input, with the --scheme of a signed one'
  return `${enable}; ${where}: ${command}`
}
