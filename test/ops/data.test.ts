import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { ROOT } from '../helpers/program.ts'

const [, postgres] = backends

t.test('what is old is removed as the manual says, and nothing else', async (t) => {
  const manual = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8')
  const [, sql = ''] = /\n### Data\n.*?```sql\n(.*?)```/s.exec(manual) ?? []
  const statements = sql.split(';').filter((text) => text.trim() !== '')
  t.equal(statements.length, 4)
  const env = await postgres.env(t)
  const [old, young] = [`now() - interval '91 days'`, `now() - interval '89 days'`]
  for (const at of [old, young]) {
    // A session, and the one that it escalated to.
    for (const parent of ['null', '(select max(id) from ops.sessions)']) {
      await postgres.query(
        env,
        `insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at,
                                   parent_session_id, chain_id)
         values (1, 'm', 'completed', 'api', ${at}, ${at}, 'h', 'm', ${at}, ${parent}, ${parent})`,
      )
    }
    for (const text of [
      `insert into ops.session_lines (session_id, seq, at, kind, text) select id, 1, ${at}, 'text', 'x' from ops.sessions
           on conflict do nothing`,
      `insert into ops.events (session_id, level, message, created_at) select max(id), 'info', 'x', ${at} from ops.sessions`,
      `insert into ops.actions (session_id, service, action_type, operation, at)
       select max(id), 's', 'restart', 'o', ${at} from ops.sessions`,
      `with alert as (
         insert into ops.alerts (fingerprint, content, first_seen, last_seen, outcome, session_id)
         select md5(max(id)::text), 'c', ${at}, ${at}, 'triggered', max(id) from ops.sessions returning id
       )
       insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
       select id, 'c', 't', 'p', ${at}, ${at} from alert`,
    ]) {
      await postgres.query(env, text)
    }
  }
  for (const text of statements) await postgres.query(env, text)
  const tables = ['sessions', 'session_lines', 'events', 'actions', 'alerts', 'alert_texts']
  const counts = tables.map((table) => `(select count(*)::int from ops.${table}) as ${table}`)
  const left = await postgres.query(env, `select ${counts.join(', ')}`)
  t.same(left, [
    { sessions: 2, session_lines: 2, events: 1, actions: 1, alerts: 1, alert_texts: 1 },
  ])
})
