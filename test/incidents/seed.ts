import type { Database } from '../../db/client.ts'
import { eventQueries } from '../../db/ops/events.ts'
import type { NamedIncident, RecordedCheck } from './incident.ts'

/** What another incident has left. */
const EMPTY = `with events as (delete from ops.events), memories as (delete from ops.memories),
     actions as (delete from ops.actions), checks as (delete from ops.checks)
delete from ops.sessions`

const STATES = `with given as (
  select * from jsonb_to_recordset($1::jsonb)
    as given(service text, name text, at timestamptz, state text, message text)
), added as (
  insert into ops.checks (service, name, type, every_s, version, next_at, state, since, message, ms, checked_at)
  select distinct on (service, name) service, name, 'command', 60, $2::text, now() + interval '1 minute',
         state, at, message, 12, now()
    from given order by service, name, at desc
  returning id, service, name
)
insert into ops.check_periods (check_id, state, began_at, ended_at, message)
select a.id, g.state, g.at, lead(g.at) over (partition by a.id order by g.at), g.message
  from given g join added a on a.service = g.service and a.name = g.name
 order by g.at`

const WEEK_MIN = 7 * 24 * 60

/** Gives an empty database the states, changes and events of an incident. */
export async function seed(db: Database, incident: NamedIncident, now: Date) {
  await db.run({ name: 'incidents.empty', text: EMPTY }, [])
  const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000)
  const states = incident.services.flatMap(({ name: service, checks }) =>
    checks.flatMap((check) => {
      return periodsOf(check).map(({ since_min, ...period }) => ({
        service,
        name: check.name,
        ...period,
        at: ago(since_min).toISOString(),
      }))
    }),
  )
  await db.run({ name: 'incidents.states', text: STATES }, [states, 'recorded'])
  for (const { min_ago, ...event } of incident.events ?? []) {
    const kept = { session: null, now: ago(min_ago), notify: false, waits: false }
    await eventQueries.addEvent(db, { ...event, ...kept })
  }
}

function periodsOf({ before, ...now }: RecordedCheck) {
  const well = { state: 'ok', says: '', since_min: now.since_min + WEEK_MIN } as const
  const earlier = before ?? (now.state === 'ok' ? [] : [well])
  return [...earlier, now].map(({ state, since_min, says = '' }) => {
    const message = state === 'ok' ? 'ended with 0' : `ended with 1, expected 0: ${says}`
    return { state, since_min, message }
  })
}
