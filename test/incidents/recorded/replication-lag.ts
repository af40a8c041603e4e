import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A replica is hours behind, because a query on it holds the replay',
  asks: 'The reports show yesterday evening. The replica seems to be behind: why?',
  host: { name: 'db-2' },
  services: [
    {
      name: 'replica',
      checks: [
        {
          name: 'lag',
          state: 'fail',
          since_min: 430,
          says: 'lag 26,310 s, expected 60 s at most',
        },
      ],
      operations: ['restart-replica'],
    },
    { name: 'primary', checks: [{ name: 'port', state: 'ok', since_min: 90_000 }] },
  ],
  programs: {
    psql: [
      {
        with: ['pg_stat_wal_receiver'],
        prints: ' status    | last_msg_receipt_time\n streaming | {-0m}',
      },
      {
        with: ['pg_stat_activity'],
        prints: ` pid  | usename | state  | xact_start | query
 5521 | analyst | active | {-7h}      | select * from events e join visits v using (day) order by random()
 5700 | app     | active | {-0m}      | select 1`,
      },
      { prints: ' pg_last_xact_replay_timestamp\n {-7h}' },
    ],
  },
  journal: {
    'postgresql.service': `{-8h} db-2 postgres[300]: parameter "max_standby_streaming_delay" changed to "-1"
{-7h} db-2 postgres[300]: recovery still waiting after 1000.2 ms: recovery conflict on snapshot
{-7h} db-2 postgres[300]: conflicting process: 5521`,
  },
  expects: {
    names: ['5521', ['conflict', 'max_standby_streaming_delay', 'replay'], ['analyst', 'query']],
  },
  good: {
    calls: [
      [
        'run_readonly',
        { argv: ['psql', '-c', 'select * from pg_stat_wal_receiver'] },
        'streaming',
      ],
      ['journal', { unit: 'postgresql.service' }, 'conflicting process: 5521'],
      ['run_readonly', { argv: ['psql', '-c', 'select * from pg_stat_activity'] }, 'analyst'],
    ],
    says: `The replica receives (streaming) and does not replay for 7 hours: a query of analyst, pid 5521, conflicts
with recovery (journal: "conflicting process: 5521"), and max_standby_streaming_delay was set to -1 an hour
before, which lets it wait for ever. Cancel 5521 and set a limit.`,
  },
  bad: {
    calls: [['run_check', { service: 'primary' }]],
    says: 'The network between primary and replica is too slow for the write load. Restart the replica.',
  },
}
