import fc from 'fast-check'
import type { Operation } from '../../../kernel/openapi.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { encode, fittingBody, pairs, wildBody, type BodyPart } from './bodies.ts'
import { nameOf, type FuzzProfile } from './profile.ts'
import { oddHeaders, oddHost, usualHeaders, type Header } from './headers.ts'
import { fitting, ODD_ENCODED, oddText } from './values.ts'
import type { WireRequest } from './wire.ts'

/**
 * A request before it is sent: `~event.3~` stands in it for the fourth of the events that exist then, so
 * that it means the same when it is repeated on another database.
 */
export type Shot = BodyPart & {
  readonly method: string
  readonly path: string
  /** With its question mark; empty without one. */
  readonly query: string
  readonly headers: readonly (readonly [string, string])[]
  readonly caller: string
}

const METHODS = 'GET HEAD POST PUT DELETE PATCH OPTIONS TRACE CONNECT PROPFIND QUERY get FOO'.split(
  ' ',
)

/** A request that a route answers well, by who may do most. */
export function plainShot(route: Route, profile: FuzzProfile): fc.Arbitrary<Shot> {
  const path = pathOf(route, (name) => inPath(profile, route, name))
  const parts = { path, query: goodQuery(route, profile), usual: usualHeaders }
  const [first = ''] = Object.keys(profile.callers)
  const caller = profile.best(route) ?? first
  return fc
    .record({ ...parts, body: fittingBody(route, profile) })
    .map(({ usual, body, ...rest }) => ({
      ...{ ...rest, ...body, caller, method: route.method },
      headers: [...hostOf(profile), ...usual],
    }))
}

/** A request of a route, or of nearly one, with something about it that is odd. */
export function wildShot(route: Route, profile: FuzzProfile): fc.Arbitrary<Shot> {
  const good = fc.constant(route.method)
  const head = route.method === 'GET' ? ['HEAD', 'HEAD'] : []
  const method = fc.oneof(
    { weight: 9, arbitrary: good },
    { weight: 1, arbitrary: fc.constantFrom(...METHODS, ...head) },
  )
  const value = (name: string): fc.Arbitrary<string> =>
    fc.oneof(
      { weight: 6, arbitrary: inPath(profile, route, name) },
      { weight: 1, arbitrary: oddText.map(encode) },
      { weight: 1, arbitrary: fc.constantFrom(...ODD_ENCODED) },
    )
  const path = fc.oneof(
    { weight: 12, arbitrary: pathOf(route, value) },
    { weight: 1, arbitrary: pathOf(route, value).chain(oddPath) },
  )
  const query = fc.oneof(
    { weight: 4, arbitrary: goodQuery(route, profile) },
    { weight: 4, arbitrary: oddQuery(route, profile) },
  )
  const own = fc.constant(hostOf(profile))
  const host = fc.oneof({ weight: 14, arbitrary: own }, { weight: 1, arbitrary: oddHost })
  const some = fc.oneof(
    { weight: 3, arbitrary: usualHeaders },
    { weight: 2, arbitrary: fc.tuple(usualHeaders, oddHeaders).map(([a, b]) => [...a, ...b]) },
  )
  const [first = ''] = Object.keys(profile.callers)
  const best = fc.constant(profile.best(route) ?? first)
  const others = fc.constantFrom(...Object.keys(profile.callers))
  const caller = fc.oneof({ weight: 3, arbitrary: best }, { weight: 2, arbitrary: others })
  return fc
    .record({ method, path, query, host, some, caller, body: wildBody(route, profile) })
    .map(({ host: first, some: then, body, ...rest }) => ({
      ...{ ...rest, ...body },
      headers: [...first, ...then],
    }))
}

/** The request that a shot is now, with what its caller adds. */
export function requestOf(shot: Shot, profile: FuzzProfile): WireRequest {
  const pools = profile.pools()
  const here = (text: string): string =>
    text.replaceAll(/~([a-z_]+)\.(\d+)~/g, (whole, kind: string, number: string) => {
      const pool = pools[kind] ?? []
      return pool[Number(number) % Math.max(1, pool.length)] ?? whole
    })
  const { method, path, query, headers, type, body, framing, caller } = shot
  const typed: Header[] = type === undefined ? [] : [['content-type', type]]
  const asked: WireRequest = {
    ...{ method, framing },
    target: here(path + query),
    headers: [
      ...headers.map(([name, value]): Header => [name, here(value)]),
      ...typed,
      ['connection', 'close'],
    ],
    body: typeof body === 'string' ? Buffer.from(here(body)) : body,
  }
  return { ...asked, headers: [...asked.headers, ...(profile.callers[caller]?.(asked) ?? [])] }
}

function hostOf({ base }: FuzzProfile): readonly Header[] {
  return [['host', new URL(base).host]]
}

function known({ known: values }: FuzzProfile, name: string): fc.Arbitrary<string> {
  return (values[name] ?? fc.constantFrom('1', 'text')).map((value) => encode(String(value)))
}

/** A parameter of a path means what the segment before it says. */
function inPath(profile: FuzzProfile, { path }: Route, name: string): fc.Arbitrary<string> {
  const segments = path.split('/')
  const special = `${segments[segments.indexOf(`:${name}`) - 1]}.${name}`
  return known(profile, special in profile.known ? special : name)
}

function pathOf(
  { path }: Route,
  value: (name: string) => fc.Arbitrary<string>,
): fc.Arbitrary<string> {
  const segments = path
    .split('/')
    .map((part) => (part.startsWith(':') ? value(part.slice(1)) : fc.constant(part)))
  return fc.tuple(...segments).map((parts) => parts.join('/'))
}

function oddPath(path: string): fc.Arbitrary<string> {
  return fc.constantFrom(
    ...[`${path}/`, `/${path}`, `${path}/x`, `/x/..${path}`, `/.${path}`, path.toUpperCase()],
    ...[`http://evil.example${path}`, `${path}%20`, `${path};x=1`, `${path}#x`, '*', '', '/'],
    ...[path.replace(/^\//, ''), path.replaceAll('/', '%2f'), `${path}/%`, `${path}\\..`],
    ...ODD_ENCODED.map((odd) => `${path}/${odd}`),
  )
}

function queryNames(route: Route, { query }: FuzzProfile): readonly string[] {
  const { query: schema }: Partial<Operation> = route
  return schema === undefined ? query : Object.keys(schema.properties)
}

function goodQuery(route: Route, profile: FuzzProfile): fc.Arbitrary<string> {
  const { query: schema }: Partial<Operation> = route
  const needed = profile.needs[nameOf(route)] ?? []
  if (needed.length > 0) {
    const members = needed.map((name) => known(profile, name).map((value) => `${name}=${value}`))
    return fc.tuple(...members).map((parts) => `?${parts.join('&')}`)
  }
  if (schema === undefined || Object.keys(schema.properties).length === 0) return fc.constant('')
  return fitting(schema, profile.known).map((value) => {
    // A cursor is of one list as it was: those that we make up are odd.
    const given = Object.entries(value ?? {}).filter(([key]) => key !== 'cursor')
    const members = given.map(([k, v]): Header => [k, String(v)])
    return members.length === 0 ? '' : `?${pairs(members)}`
  })
}

function oddQuery(route: Route, profile: FuzzProfile): fc.Arbitrary<string> {
  const names = fc.constantFrom(...queryNames(route, profile), ...profile.query, 'odd', '')
  const good = names.chain((name) =>
    fc.tuple(fc.constant(name), known(profile, name)).map((pair) => pair.join('=')),
  )
  const odd = fc.tuple(names, oddText.map(encode)).map((pair) => pair.join('='))
  const raw = fc.tuple(names, fc.constantFrom(...ODD_ENCODED)).map((pair) => pair.join('='))
  const bare = fc.constantFrom('', '=', '&&', '?', 'a', '%', '+', '[]=1')
  return fc
    .array(fc.oneof({ weight: 4, arbitrary: good }, { weight: 4, arbitrary: odd }, raw, bare), {
      minLength: 1,
      maxLength: 4,
    })
    .map((parts) => `?${parts.join('&')}`)
}
