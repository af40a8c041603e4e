/** What a form has done. */
const VERBS = [
  'acknowledged',
  'added',
  'approved',
  'cancelled',
  'checked',
  'confirmed',
  'created',
  'deleted',
  'disabled',
  'enabled',
  'ended',
  'marked',
  'moved',
  'muted',
  'paused',
  'rejected',
  'removed',
  'renamed',
  'restored',
  'resumed',
  'retried',
  'revoked',
  'rotated',
  'saved',
  'started',
  'stopped',
  'unmuted',
] as const

/** What was done and to what, such as `['removed', 'erp']`: the page says "Removed erp." */
export type Outcome = readonly [verb: (typeof VERBS)[number], of?: string]

/** The header by which a fragment says it: percent-encoded, as headers are ASCII. */
const HEADER = 'gatehouse-done'

/** A name or a count with its noun. An address that others made can't say more than that. */
const NAME = /^[\p{L}\p{N}@._:/+-]{1,64}(?: [\p{L}\p{N}@._:/+-]{1,64}){0,2}$/u

function outcomeText([verb, of]: Outcome): string {
  const text = of === undefined ? verb : `${verb} ${of}`
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

export function outcomeHeader(done: Outcome | undefined): Readonly<Record<string, string>> {
  return done === undefined ? {} : { [HEADER]: encodeURIComponent(outcomeText(done)) }
}

/**
 * A path whose page says what was done. It stands in the query: nothing is kept between the two
 * requests, and another instance may answer the second.
 */
export function withOutcome(location: string, done: Outcome | undefined): string {
  if (done === undefined) return location
  const [verb, of] = done
  const query = new URLSearchParams({ done: verb, ...(of !== undefined && { of }) })
  const [path = '', ...fragment] = location.split(/(?=#)/)
  return `${path}${path.includes('?') ? '&' : '?'}${query}${fragment.join('')}`
}

/** What the page of such a path says; undefined for any other path. */
export function saidOutcome(query: URLSearchParams): string | undefined {
  const verb = VERBS.find((one) => one === query.get('done'))
  if (verb === undefined) return undefined
  const of = query.get('of') ?? ''
  return outcomeText(NAME.test(of) ? [verb, of] : [verb])
}
