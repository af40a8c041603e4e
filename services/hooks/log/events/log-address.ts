import { badRequest } from '../../../../kernel/fault.ts'
import { validateQuery, validateTexts } from '../../../../kernel/validate.ts'
import { boundsOf } from './days.ts'
import { ExportQuery, LogQuery } from './filter.ts'
import { readTokens, tokensOf } from './tokens.ts'

// The filters in the address of the log: each by its own name, or in its field and its menus.

/** What stands in the form: `q` has all filters that the menus don't have. */
export type LogTyped = Pick<LogQuery, 'q' | 'when' | 'from' | 'to' | 'zone'>

/** The parameters of the address that are filters of events. */
const FILTERS = [...Object.keys(ExportQuery.properties), 'q', 'when', 'from', 'to', 'zone']

/** The filters, also those that the page has in its field and its menu. */
export function filterOfPage(query: LogQuery, now: Date): LogQuery {
  const words = readTokens(query.q)
  // Times among the words win over the menu, which then shows none.
  const when = words.since === undefined && words.until === undefined ? query.when : ''
  const read = { ...boundsOf({ ...query, when }, now), ...words }
  // Their forms are tested as if they had been sent by themselves.
  const { provider, event_type, text, json, header, since, until } = query
  const own = { provider, event_type, text, json, header, since, until, verified: query.verified }
  const texts: Readonly<Record<string, string>> = { ...own, ...read }
  return { ...query, when, ...validateTexts(ExportQuery, (name) => texts[name]) }
}

/** What the form shows: the provider and a time of the menu are not in its text. */
export function typedOf(filter: LogQuery): LogTyped {
  const { when, from, to, zone } = filter
  const isChosen = when !== ''
  const bounds = isChosen ? { since: '', until: '' } : {}
  return { q: tokensOf({ ...filter, provider: '', ...bounds }), when, from, to, zone }
}

/** The query of the address that the form sends for these filters; empty for none. */
export function addressOf(filter: LogQuery): string {
  const { q, when, from, to, zone } = typedOf(filter)
  const times = when === '' ? {} : { when, from, to, zone }
  const texts = Object.entries({ q, provider: filter.provider, ...times })
  return String(new URLSearchParams(texts.filter(([, text]) => text !== '')))
}

/** The same for the query of any address of the log. Throws 400 for one that the log refuses. */
export function readAddress(query: string, now: Date): string {
  const parameters = new URLSearchParams(query)
  const other = [...parameters.keys()].some((name) => !FILTERS.includes(name))
  if (other) throw badRequest(`query may have only ${FILTERS.join(', ')}.`)
  return addressOf(filterOfPage(validateQuery(LogQuery, parameters), now))
}
