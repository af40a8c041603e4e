import { statsOf, type Stats } from '../services/links/stats.ts'
import type { DatabaseTools } from './command.ts'
import { factLines, table } from './output.ts'

/** Days with visits that are listed; JSON has all that are kept. */
const SHOWN_DAYS = 30

/** Prints the statistics of a link, as JSON in the shape of the API. */
export async function printStats(
  { db, config, now, output }: DatabaseTools,
  link: string,
  json: boolean,
): Promise<void> {
  const stats = await statsOf({ db, stats: () => config.current.LINKS_STATS }, link, now())
  if (json) return output.out(JSON.stringify(stats))
  for (const line of linesOf(stats)) output.out(line)
}

function linesOf(stats: Stats): readonly string[] {
  const { total, by_kind, last_visit, days, referrers, clients } = stats
  const facts = factLines({
    visits: total,
    'last visit': last_visit?.toISOString() ?? 'never',
    people: by_kind.human,
    programs: by_kind.bot,
    previews: by_kind.preview,
    'came from': referrers.map(({ host, visits }) => `${host} ${visits}`).join(', '),
    'came with': clients.map(({ name, visits }) => `${name} ${visits}`).join(', '),
  })
  const shown = days.slice(-SHOWN_DAYS)
  if (shown.length === 0) return facts
  const rows = shown.map(({ day, visits }) => [day, String(visits)])
  return [...facts, '', ...table(['DAY', 'VISITS'], rows)]
}
