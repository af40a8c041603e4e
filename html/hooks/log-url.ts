import type { LogQuery } from '../../services/hooks/log/events/filter.ts'

/** The filters that are texts, in the order of the address; an empty one is no filter. */
export const FILTERS = {
  rejected: '',
  provider: 'Provider',
  event_type: 'Event type',
  since: 'Since',
  until: 'Until',
  verified: 'Signature',
  text: 'Contains',
  json: 'JSON',
  header: 'Header',
} as const
type FilterName = keyof typeof FILTERS
export const FILTER_NAMES = Object.keys(FILTERS) as readonly FilterName[]

/** The filters of `/log` as they stand in its URL. */
export type LogFilter = Pick<LogQuery, FilterName | 'limit'>

/** Rows of a page of the log. */
export const DEFAULT_LIMIT = 50

/** The address of a filtered log, without what is empty or the default. */
export function logUrl(filter: Partial<LogFilter>): string {
  return filteredUrl('/log', filter)
}

/** The address of another page of the same filters. */
export function filteredUrl(
  path: string,
  { limit = DEFAULT_LIMIT, ...texts }: Partial<LogFilter>,
): string {
  const query = new URLSearchParams()
  for (const name of FILTER_NAMES) {
    if (texts[name]) query.set(name, texts[name])
  }
  if (limit !== DEFAULT_LIMIT) query.set('limit', String(limit))
  return query.size === 0 ? path : `${path}?${query}`
}
