import type { ConfigSource } from '../kernel/config.ts'
import type { OutboundRequest, OutboundResult } from '../kernel/net/outbound.ts'
import type { RandomBytes } from '../kernel/token-hash.ts'
import { receiverPath, isGenericName } from '../services/hooks/providers.ts'
import { parseTarget, TARGET_FORM } from '../services/hooks/replay-target.ts'
import { makeSample, type Sample } from '../services/hooks/sample.ts'
import { signDelivery } from '../services/hooks/schemes.ts'
import {
  isSignedProvider,
  SECRET_PREFIX,
  secretVariable,
  signingKey,
  type SigningSecrets,
} from '../services/hooks/secrets.ts'
import { cleanText } from '../services/hooks/event-fields.ts'
import { readFlags } from './action-arguments.ts'
import { DONE, fail, UsageError, type Output } from './command.ts'
import { serviceUrl } from './places.ts'

export const SEND_SAMPLE_USAGE = 'gatehouse send-sample PROVIDER [--to URL] [--token-stdin]'

/** What the command works with. */
export interface SampleTools {
  readonly config: ConfigSource
  readonly secrets: SigningSecrets
  readonly random: RandomBytes
  readonly now: () => Date
  readonly post: (request: OutboundRequest) => Promise<OutboundResult>
  /** Reads standard input to its end. */
  readonly readInput: () => Promise<string>
}

/** The arguments of `send-sample`; `provider` is a full name such as `generic:ci`. */
interface Wanted {
  readonly provider: string
  readonly to: URL | undefined
  readonly tokenStdin: boolean
}

const TIMEOUT_MS = 10_000
const ANSWER_BYTES = 4_096

/**
 * `gatehouse send-sample …`: sends a made-up delivery, signed or with its token, to the receiver of
 * the running server or to another one; says what was answered and where to look.
 */
export async function sendSample(
  args: readonly string[],
  tools: SampleTools,
  output: Output,
): Promise<number> {
  const wanted = parseSendSample(args)
  const url = wanted.to ?? receiverOf(wanted.provider, tools.config)
  if (url === undefined) return fail(output, NO_ADDRESS)
  const at = tools.now()
  const sample = makeSample(wanted.provider, at, tools.random)
  const { type, headers, body } = sample
  const proof = await proofOf(wanted, tools, sample, at)
  if ('problem' in proof) return fail(output, proof.problem)

  output.err(`sending ${type} to ${url.href}`)
  const result = await tools.post({
    url,
    headers: { ...headers, ...proof.headers },
    body,
    timeoutMs: TIMEOUT_MS,
    // Whoever may run this command may connect to anything anyhow.
    trusted: true,
    answerBytes: ANSWER_BYTES,
  })
  if (result.kind !== 'answered') return fail(output, `no answer: ${result.reason}`, NOT_RUNNING)
  return report(wanted.provider, url, result.status, result.body.toString('utf8'), output)
}

/** Reads the arguments of `send-sample`; throws `UsageError`. */
function parseSendSample(args: readonly string[]): Wanted {
  const { positionals, flags } = readFlags(args, FLAGS)
  const [name = '', ...rest] = positionals
  const { to: target, 'token-stdin': tokenStdin = false } = flags
  if (name === '') throw new UsageError('Missing PROVIDER')
  if (rest.length > 0) throw new UsageError('Too many arguments')
  const signed = isSignedProvider(name)
  const generic = name.replace(/^generic:/, '')
  if (!signed && !isGenericName(generic)) throw new UsageError(`"${name}" is no provider's name`)
  if (signed && tokenStdin) throw new UsageError(`${name} is signed: it takes no token`)
  const to = target === undefined ? undefined : parseTarget(target)
  if (target !== undefined && to === undefined) throw new UsageError(`--to takes ${TARGET_FORM}`)
  return { provider: signed ? name : `generic:${generic}`, to, tokenStdin }
}

const FLAGS = { to: { type: 'string' }, 'token-stdin': { type: 'boolean' } } as const

/** The receiver of the server that this configuration is for; undefined without a fixed TCP port. */
function receiverOf(provider: string, config: ConfigSource): URL | undefined {
  const base = serviceUrl('hooks', config)
  return base === undefined ? undefined : new URL(receiverPath(provider), base)
}

/** What shows that the delivery is the provider's own: a signature, a token, or nothing. */
async function proofOf(
  { provider, tokenStdin }: Wanted,
  { secrets, readInput }: SampleTools,
  { id, body }: Sample,
  at: Date,
): Promise<{ readonly headers: Readonly<Record<string, string>> } | { readonly problem: string }> {
  if (isSignedProvider(provider)) {
    const [current] = secrets.of(provider)?.accepted ?? []
    return current === undefined
      ? { problem: `${secretVariable(provider)} is not set; give this command the server's secret` }
      : { headers: signDelivery(provider, { id, body }, current, at) }
  }
  if (!tokenStdin) return { headers: {} }
  const token = (await readInput()).trim()
  if (token === '') return { problem: 'standard input holds no token' }
  // The secret of a provider that signs says so itself; a token never begins like this.
  const key = token.startsWith(SECRET_PREFIX) ? signingKey(token) : undefined
  if (key !== undefined)
    return { headers: signDelivery('standard_webhooks', { id, body }, key, at) }
  return { headers: { authorization: `Bearer ${token}` } }
}

function report(provider: string, url: URL, status: number, text: string, output: Output): number {
  const answer = readAnswer(text)
  if (status >= 200 && status < 300) {
    output.out(`${status} ${cleanText(text) ?? ''}`.trimEnd())
    if (answer.id !== undefined) output.err(`see ${url.origin}/log/${answer.id}`)
    return DONE
  }
  const { detail } = answer
  const said = cleanText(detail ?? text)
  const hint = detail === undefined ? undefined : hintOf(provider, status)
  return fail(output, `refused with ${status}${said === null ? '' : `: ${said}`}`, hint)
}

/** The members of a receiver's answer that are of use; a stranger's answer may have none. */
function readAnswer(text: string): { readonly id?: number; readonly detail?: string } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return {}
    return {
      ...('id' in value && Number.isSafeInteger(value.id) && { id: Number(value.id) }),
      ...('detail' in value && typeof value.detail === 'string' && { detail: value.detail }),
    }
  } catch {
    // SyntaxError: no JSON.
    return {}
  }
}

/** What to do about a refusal by a receiver of Gatehouse. */
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

const NO_ADDRESS =
  'HOOKS_ADDR names no TCP port; give the URL of the receiver by --to or in HOOKS_BASE_URL'
const NOT_RUNNING = 'start the server with: gatehouse serve; or name another receiver by --to URL'
