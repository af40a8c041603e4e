import { isDeepStrictEqual } from 'node:util'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { linesOf } from '../helpers/outages.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** More than two batches. */
const OLD = 1_100
const YOUNG = 10
/** The tables, and which rows of them are ours. */
const TABLES = {
  'hooks.events': `provider = 'generic:mine'`,
  'links.clicks': 'true',
  'ops.events': `service = 'mine'`,
  'audit.changes': `subject = 'generic:mine'`,
}

/** In each table the old rows, and the young ones behind them. */
const FILL = `
  create temporary table ages as
  select n, now() - case when n <= ${OLD} then interval '5 years' else interval '1 minute' end as at
    from generate_series(1, ${OLD + YOUNG}) as n;
  insert into hooks.events (provider, trust, headers, payload, received_at)
  select 'generic:mine', 3, '[]', '', at from ages order by n;
  insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
  values ('docs', 'https://docs.test/', '', '', 'public', false, now(), now());
  insert into links.clicks
  select id, (at - n % ${OLD} * interval '1 day')::date, 'human', 1 from links.links cross join ages;
  insert into ops.events (level, service, message, created_at)
  select 'info', 'mine', 'old', at from ages order by n;
  insert into audit.changes (actor, action, service, subject, at)
  select 'ann', 'provider add', 'hooks', 'generic:mine', at from ages order by n;`

/** Each removal begins, and takes long enough for the other instance to begin the same one. */
const SLOW = `
  create function public.slow() returns trigger language plpgsql
      as $$ begin perform pg_sleep(0.2); return null; end $$;
  ${Object.keys(TABLES)
    .map(
      (table) => `create trigger slow before delete on ${table} execute function public.slow();`,
    )
    .join('\n')}`

/** What an instance says it has removed, by what it was. */
function removedBy(server: TestServer, name: string) {
  return linesOf(server)
    .filter(({ msg }) => msg === 'pruned')
    .reduce((sum, line) => sum + Number(line[name] ?? 0), 0)
}

await t.test(
  'two instances that prune at once remove each old row once, and no other',
  async (t) => {
    const env = await postgres.env(t)
    await postgres.query(env, FILL + SLOW)
    const both = await Promise.all([startServer(t, { env }), startServer(t, { env })])
    const counts = Object.entries(TABLES).map(
      ([table, ours]) => `(select count(*)::int from ${table} where ${ours}) as "${table}"`,
    )
    const left = async () => (await postgres.query(env, `select ${counts.join()}`))[0]
    const young = Object.fromEntries(Object.keys(TABLES).map((table) => [table, YOUNG]))
    await until(async () => isDeepStrictEqual(await left(), young), 'the old rows to go')
    for (const server of both) t.match(await server.stop(), { code: 0 })
    t.same(await left(), young)
    // Hooks and ops both have events.
    for (const [name, count] of [
      ['events', 2 * OLD],
      ['clicks', OLD],
      ['changes', OLD],
    ] as const) {
      const removed = both.reduce((sum, server) => sum + removedBy(server, name), 0)
      t.equal(removed, count, name)
    }
    const lines = both.flatMap((server) => server.logs())
    t.same(
      lines.filter((line) => /prune failed|"level":"error"/.test(line)),
      [],
    )
  },
)
