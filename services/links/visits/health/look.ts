import type { HostSet } from '../../../../kernel/net/addresses.ts'
import type { OutboundRequest, OutboundResult } from '../../../../kernel/net/outbound.ts'
import { pause } from '../../../../kernel/time.ts'
import type { OwnHosts } from '../../names/links/loop.ts'
import { prepareTarget } from '../../names/links/target.ts'

/** What one look at an address has found. `missing`: it has no page, or its host does not exist. */
export interface Outcome {
  kind: 'ok' | 'missing' | 'unknown'
  /** Of the answer; null for none. */
  status: number | null
  /** What is wrong, for people. */
  problem: string | null
}

type Ask = (request: Omit<OutboundRequest, 'body'>) => Promise<OutboundResult>

/** How addresses are asked, and which of them. */
export interface LookTools {
  head: Ask
  get: Ask
  /** Hosts of private networks that may be asked. */
  hosts: () => HostSet | undefined
  ownHosts: OwnHosts
  signal: AbortSignal
}

const TIMEOUT_MS = 10_000
/** A host gets one request a second. */
export const REST_MS = 1_000
const HEADERS = { 'user-agent': 'gatehouse-link-check', accept: '*/*' }
const MISSING: ReadonlySet<number> = new Set([404, 410])
const TOO_MANY_REQUESTS = 429

/**
 * Asks for an address by HEAD, and by GET if the answer is a refusal or none: many servers answer
 * GET alone. No cookie is sent, no body read and no redirect followed: an answer that leads
 * elsewhere is a good one.
 */
export async function lookAt(tools: LookTools, address: string): Promise<Outcome> {
  const { signal, hosts, ownHosts } = tools
  const url = new URL(prepareTarget({ url: address, append_path: false }).url)
  if (ownHosts(url)) return unknown('not asked: it leads to this server')
  const request = {
    url,
    headers: HEADERS,
    timeoutMs: TIMEOUT_MS,
    answerBytes: 0,
    signal,
    trusted: hosts()?.(url) === true,
  }
  const first = await tools.head(request)
  if (!deservesGet(first)) return outcomeOf(first)
  await pause(REST_MS, signal)
  return outcomeOf(await tools.get(request))
}

function deservesGet(result: OutboundResult): boolean {
  if (result.kind === 'refused') return false
  if (result.kind === 'failed') return !isUnknownHost(result)
  return result.status >= 400 && result.status !== TOO_MANY_REQUESTS
}

function outcomeOf(result: OutboundResult): Outcome {
  if (result.kind === 'refused') {
    return unknown('not asked: its host is not on the public internet, nor in LINKS_CHECK_HOSTS')
  }
  if (result.kind === 'failed') {
    if (!isUnknownHost(result)) return unknown(result.reason)
    return { kind: 'missing', status: null, problem: 'its host does not exist' }
  }
  const { status } = result
  if (status >= 200 && status < 400) return { kind: 'ok', status, problem: null }
  const problem = `its server answers ${status}`
  return { kind: MISSING.has(status) ? 'missing' : 'unknown', status, problem }
}

/** A name server has said that there is no such name; one that does not answer is another error. */
function isUnknownHost(result: OutboundResult): boolean {
  return result.kind === 'failed' && result.code === 'ENOTFOUND'
}

function unknown(problem: string): Outcome {
  return { kind: 'unknown', status: null, problem }
}
