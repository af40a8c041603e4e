import { run } from '../../test/helpers/postgres.ts'

/**
 * Fills a migrated database with `count` events, one each second until now, three quarters of one provider, and
 * has retention keep them all.
 */
export async function seedEvents(url: string, count: number): Promise<void> {
  await run(url, 'update hooks.settings set retention_max_rows = 0, retention_max_age_days = 0')
  await run(
    url,
    `insert into hooks.events (provider, event_type, trust, external_id, headers, payload, body_check, received_at)
     select case when n % 4 = 0 then 'payments' else 'code_host' end, 'push', 1, 'seed-' || n,
            '[["Content-Type", "application/json"]]', convert_to(repeat('x', 200), 'UTF8'), n,
            now() - interval '1 second' * (${count} - n)
       from generate_series(1, ${count}) as n`,
  )
  await run(url, 'vacuum analyze hooks.events')
}
