import type { TObject, TSchema } from '../schema.ts'
import type { ChannelReply } from './websocket.ts'
import type { Context, RequestKind } from './context.ts'
import type { Access } from '../net/guard.ts'
import { percentDecoded } from '../text.ts'
import type { Reply } from './reply.ts'

/** One endpoint. `:name` in the path matches one segment. HEAD is served by GET. */
export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  access: Access
  kind?: RequestKind
  /** It answers requests for a WebSocket. Others get 426, which names the program that speaks it. */
  webSocketOf?: string
  /** The schemas of the parameters in the path; a parameter without a schema is a string. */
  params?: Readonly<Record<string, TSchema>>
  query?: TObject
  /** A form, or what an operation of an API takes. */
  body?: TSchema
  handle: (context: Context) => Answer | Promise<Answer>
}

/** What a handler returns; the second only where WebSocket is spoken. */
export type Answer = Reply | ChannelReply

/** What a request line leads to. */
export type Match =
  | {
      kind: 'route'
      route: Route
      params: Readonly<Record<string, string>>
    }
  | { kind: 'wrong-method'; allow: string }
  | { kind: 'none' }

export type FindRoute = (method: string, path: string) => Match

/** What answers where no route does: `allow` names the methods of a path that is known. */
export type Fallback = (path: string, allow: string | undefined, method: string) => Match

interface Pattern {
  route: Route
  segments: readonly Segment[]
}

/** A segment that must be there as it is, or any at all, which is the parameter of that name. */
interface Segment {
  literal: string | undefined
  name: string
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})

/** As the contract of most services has it: 405 where the path is known, else nothing. */
export const noRoute: Fallback = (_path, allow) =>
  allow === undefined ? { kind: 'none' } : { kind: 'wrong-method', allow }

/**
 * Ordered first-match routing; paths without parameters are found in one look-up. A path that is
 * served for other methods only may still be a parameter of another route: `GET
 * /sessions/trigger`. A doubled slash, as proxies and typed base URLs make them, counts as one where
 * the path has no route as it is.
 */
export function createRouter(routes: readonly Route[], fallback: Fallback = noRoute): FindRoute {
  const fixed = new Map<string, Route[]>()
  /** By how many segments they have: most paths have no candidate at all. */
  const patterned: Pattern[][] = []
  for (const route of routes) {
    if (route.path.includes(':')) {
      const segments = route.path.split('/').map(segmentOf)
      const alike = (patterned[segments.length] ??= [])
      alike.push({ route, segments })
    } else fixed.set(route.path, [...(fixed.get(route.path) ?? []), route])
  }

  /** The route of a path, else those of other methods. */
  function lookUp(wanted: string, path: string): Match | readonly Route[] {
    const here = fixed.get(path)
    const route = here?.find((candidate) => candidate.method === wanted)
    if (route !== undefined) return { kind: 'route', route, params: NO_PARAMS }
    const others: Route[] = here === undefined ? [] : [...here]
    for (const candidate of patterned[countSegments(path)] ?? []) {
      const params = matchPath(candidate.segments, path)
      if (params === undefined) continue
      if (candidate.route.method === wanted)
        return { kind: 'route', route: candidate.route, params }
      others.push(candidate.route)
    }
    return others
  }

  return function find(method, path) {
    const wanted = method === 'HEAD' ? 'GET' : method
    const found = lookUp(wanted, path)
    if ('kind' in found) return found
    if (found.length > 0) return fallback(path, methodsOf(found), method)
    if (!path.includes('//')) return fallback(path, undefined, method)
    const single = path.replace(/\/{2,}/g, '/')
    const meant = lookUp(wanted, single)
    if ('kind' in meant) return meant
    return fallback(single, meant.length > 0 ? methodsOf(meant) : undefined, method)
  }
}

function methodsOf(routes: readonly Route[]) {
  const methods = new Set<string>()
  for (const route of routes) {
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
  }
  return [...methods].sort().join(', ')
}

function segmentOf(text: string): Segment {
  return text.startsWith(':')
    ? { literal: undefined, name: text.slice(1) }
    : { literal: text, name: '' }
}

function countSegments(path: string) {
  let count = 1
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) count++
  return count
}

/** The parameters of a path of as many segments; splitting it would cost twice as much. */
function matchPath(
  pattern: readonly Segment[],
  path: string,
): Readonly<Record<string, string>> | undefined {
  const params: Record<string, string> = {}
  let at = 0
  for (const { literal, name } of pattern) {
    const slash = path.indexOf('/', at)
    const segment = path.slice(at, slash < 0 ? undefined : slash)
    at += segment.length + 1
    if (literal !== undefined) {
      if (literal !== segment) return undefined
      continue
    }
    const value = decodeParameter(segment)
    if (value === undefined || value === '') return undefined
    params[name] = value
  }
  return params
}

/**
 * A parameter as text; undefined where its encoding is broken. The database takes no NUL, so
 * nothing has one.
 */
function decodeParameter(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  return percentDecoded(segment)?.replaceAll('\0', '\u{FFFD}')
}
