import { run } from '../../test/helpers/postgres.ts'

/** How late checks looked, in seconds, and how often. */
export interface Lateness {
  readonly most: number
  readonly p99: number
  readonly runs: number
}

/** Of the checks of all services but one, since a time. A check is due at its own second of its interval. */
export async function latenessSince(url: string, began: Date, without = ''): Promise<Lateness> {
  const [late] = await run(
    url,
    `select max(lag) as most, percentile_cont(0.99) within group (order by lag) as p99, count(*)::integer as runs
       from ops.check_results r
       join ops.checks c on c.id = r.check_id,
            lateral (select extract(epoch from r.at) - r.ms / 1000.0 - c.id * 7919 % c.every_s as begun) b,
            lateral (select (begun - floor(begun / c.every_s) * c.every_s)::float8 as lag) l
      where c.service <> $2
        and r.at > $1`,
    [began, without],
  )
  return { most: Number(late?.['most']), p99: Number(late?.['p99']), runs: Number(late?.['runs']) }
}
