import { isLoopbackName } from '../../../../kernel/net/addresses.ts'
import { accepted, readWebUrl } from '../../../../kernel/variables.ts'

/** Whose failed deliveries are looked up. */
export interface Source {
  /** As `HOOKS_RECOVER` names it, in lower case: `github:owner/repo` or `stripe`. */
  name: string
  sender: SenderName
  /** `owner/repo` or an organization; empty for Stripe, whose key says it. */
  target: string
}

export type SenderName = 'github' | 'stripe'

export const TARGET_FORM = 'OWNER/REPO, or the name of an organization'
export const SOURCES_FORM = 'a comma-separated list of github:OWNER/REPO, github:ORG and stripe'

/** Where the APIs are. */
export const API_URLS: Readonly<Record<SenderName, string>> = {
  github: 'https://api.github.com',
  stripe: 'https://api.stripe.com',
}

const TARGET = /^[\w-]{1,100}(?:\/(?!\.{1,2}$)[\w.-]{1,100})?$/

/** A repository or an organization. Names of GitHub are the same in upper and lower case. */
export function githubSource(target: string): Source | undefined {
  if (!TARGET.test(target)) return undefined
  const small = target.toLowerCase()
  return { name: `github:${small}`, sender: 'github', target: small }
}

export const STRIPE: Source = { name: 'stripe', sender: 'stripe', target: '' }

/** The sources of a list; throws a SyntaxError for another text. */
export function readSources(text: string): readonly Source[] {
  const sources = text.split(',').map((entry) => readSource(entry.trim()))
  return [...new Map(sources.map((source) => [source.name, source])).values()]
}

function readSource(text: string): Source {
  const [sender, target = ''] = text.split(':', 2)
  const source = text === 'stripe' ? STRIPE : sender === 'github' && githubSource(target)
  if (source === false || source === undefined) {
    throw new SyntaxError('an entry has another form')
  }
  return source
}

/** The address of an API. A token must not cross a network in plain text. */
export const API_URL = accepted('an https:// URL, or an http:// one on this machine', (text) => {
  const url = readWebUrl(text)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isPlain = url.protocol === 'http:' && !isLoopbackName(host)
  return isPlain || url.search !== '' || url.hash !== '' ? undefined : url
})
