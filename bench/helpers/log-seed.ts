import { run } from '../../test/helpers/postgres.ts'

/** Newest events whose payloads are as long as common ones; those of the others are short. */
const LONG_PAYLOADS = 20_000
/** The destination whose page is measured. */
export const BUSY_DESTINATION = 'erp'

/**
 * Statements that fill the log with `count` events of five providers and 40 types, one event each second until now. One
 * type in 10,000 events is rare. A disabled destination waits for all of them, and 10,000 are dead.
 */
function seed(count: number): readonly string[] {
  return [
    'update hooks.settings set retention_max_rows = 0, retention_max_age_days = 0',
    `insert into hooks.providers (name, family, trust_mode, enabled, token_hash)
     select name, 'webhook', 'token', true, sha256(name::bytea) from unnest(array['generic:ci', 'generic:shop']) name`,
    `insert into hooks.events (provider, event_type, trust, external_id, method, content_type, headers, payload, body_check,
                               received_at)
     select (array['code_host', 'code_host', 'payments', 'chat', 'generic:ci', 'generic:shop'])[1 + n % 6],
            case when n % 10000 = 77 then 'refund.failed' when n % 6 < 2 then 'push' else 'type.' || n % 40 end,
            case when n % 6 > 3 then 2 else 1 end, 'seed-' || n, 'POST', 'application/json',
            '[["Content-Type", "application/json"], ["User-Agent", "seed/1"]]',
            convert_to('{"id": ' || n || ', "customer": {"name": "Globex ' || n % 100 || '"}, "amount": ' || n % 9999
                       || ', "status": "open", "note": "' || case when n > ${count - LONG_PAYLOADS}
                                                                  then repeat(md5(n::text), 58) else '' end || '"}', 'UTF8'),
            n, now() - interval '1 second' * (${count} - n)
       from generate_series(1, ${count}) as n`,
    'insert into hooks.event_types select distinct provider, event_type from hooks.events',
    `insert into hooks.activity (provider, minute, events)
     select provider, date_trunc('minute', received_at), count(*)
       from hooks.events
      where received_at > now() - interval '2 days'
      group by 1, 2`,
    `insert into hooks.rejections (at, provider, status, source, reason)
     select now() - n * interval '1 minute', 'generic:ci', 401, '192.0.2.0/24', 'wrong token'
       from generate_series(1, 1000) n`,
    `insert into hooks.rejection_minutes
     select 'generic:ci', date_trunc('minute', now()) - n * interval '1 minute', 1, 1 from generate_series(1, 1000) n`,
    `insert into hooks.rejection_totals values ('generic:ci', 401, 1000, now())`,
    `insert into hooks.destinations (name, url, ordered, position, disabled_at, disabled_by)
     values ('${BUSY_DESTINATION}', 'https://example.com/in', true, ${count}, now(), 'operator')`,
    `insert into hooks.destination_deliveries (destination, event_id, tries, next_at, last_at, last_status)
     select '${BUSY_DESTINATION}', id, 8, case when id % 100 > 0 then now() end, now(), 503 from hooks.events`,
    `insert into hooks.attempts (event_id, kind, target, outcome, status, ms, at)
     select id, 'destination', 'https://example.com/in', 'failed', 503, 12, now() from hooks.events where id % 10 = 0`,
    'vacuum analyze',
  ]
}

/** Fills a migrated database with `count` events, and has retention keep them all. */
export async function seedLog(url: string, count: number): Promise<void> {
  for (const statement of seed(count)) await run(url, statement)
}
