import type { ClickKind } from '../../../../db/links/visits/visits.ts'
import type { OwnHosts } from '../../names/links/loop.ts'
import { clientOf, type Client } from './clients.ts'

/** The headers of a visit of which something is counted. */
export interface VisitHeaders {
  'user-agent'?: string | undefined
  referer?: string | undefined
  'sec-purpose'?: string | string[] | undefined
  purpose?: string | string[] | undefined
  'x-moz'?: string | string[] | undefined
}

/** Without a referrer, from our own pages, and everything that is not counted by its name. */
const DIRECT = 'direct'
const SELF = 'self'
export const OTHER = 'other'

/** What is read of a header: a host, and a client's name, stand near its beginning. */
const MAX_READ = 512
/** The longest name of a host. */
const MAX_HOST = 253
/** Texts whose meaning is remembered: the same ones come again and again. */
const MAX_REMEMBERED = 1_000
/** An address could be that of a person's machine: it counts as `other`. */
const NAME = /^(?![\d.]+$)[a-z0-9._-]+$/

/** Reads headers. What a text means is remembered until `forget`: a visit must not wait for it. */
export function createSources(ownHosts: OwnHosts) {
  const referrers = new Map<string, string>()
  const clients = new Map<string, Client>()

  return {
    referrerOf({ referer }: VisitHeaders): string {
      if (referer === undefined || referer === '') return DIRECT
      return remembered(referrers, referer, (text) => hostOf(text, ownHosts))
    },

    clientOf: ({ 'user-agent': agent = '' }: VisitHeaders) => remembered(clients, agent, clientOf),

    /** Own hosts may change while the program runs. */
    forget() {
      referrers.clear()
      clients.clear()
    },
  }
}

/** How browsers say that they load ahead: `prefetch;prerender`, and `preview` of Safari. */
const AHEAD = /^(prefetch|prerender|preview)\b/i

/** Whether a person follows a link, a program, or one that only looks; so does a browser ahead. */
export function kindOf({ kind }: Client, headers: VisitHeaders): ClickKind {
  if (kind !== 'human') return kind
  const purposes = [headers['sec-purpose'], headers.purpose, headers['x-moz']].flat()
  return purposes.some((purpose) => AHEAD.test(purpose ?? '')) ? 'preview' : 'human'
}

/** A text's meaning. Strangers choose the texts, so few and short ones are remembered. */
function remembered<T>(known: Map<string, T>, text: string, read: (text: string) => T): T {
  const found = known.get(text)
  if (found !== undefined) return found
  const meaning = read(text.slice(0, MAX_READ))
  if (text.length > MAX_READ) return meaning
  if (known.size >= MAX_REMEMBERED) known.clear()
  known.set(text, meaning)
  return meaning
}

/** The host of a referrer, without port and path. */
function hostOf(referrer: string, ownHosts: OwnHosts): string {
  const url = URL.parse(referrer)
  if (url === null || !/^(https?|android-app):$/.test(url.protocol)) return OTHER
  if (ownHosts(url)) return SELF
  const host = url.hostname.toLowerCase().replace(/\.$/, '')
  return host.length <= MAX_HOST && NAME.test(host) ? host : OTHER
}
