import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'The kernel has killed the database, because a report takes all memory',
  asks: 'The database went away for a minute. Find out why, and whether it comes again.',
  host: { memory: 88 },
  services: [
    {
      name: 'database',
      checks: [
        {
          name: 'port 5432',
          state: 'ok',
          since_min: 13,
          before: [
            { state: 'ok', since_min: 9_000 },
            { state: 'fail', since_min: 14, says: 'connection refused' },
          ],
        },
      ],
    },
    {
      name: 'host',
      checks: [{ name: 'memory', state: 'warn', since_min: 3, says: '88 % of the memory used' }],
    },
  ],
  programs: {
    ps: [
      {
        prints: `  PID USER      RSS  STARTED COMMAND
 7731 report 9830400 {-16m} python3 /srv/report/monthly.py --year 2019
 8122 postgres 412000 {-13m} postgres: main
 1002 www     210000 {-30d} node /srv/shop/server.js`,
      },
    ],
  },
  journal: {
    kernel: `{-14m} web-1 kernel: python3 invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0
{-14m} web-1 kernel: Out of memory: Killed process 5120 (postgres) total-vm:6120344kB, anon-rss:4011220kB
{-14m} web-1 kernel: oom_reaper: reaped process 5120 (postgres)`,
    'postgresql.service': `{-14m} web-1 postgres[5100]: server process (PID 5120) was terminated by signal 9: Killed
{-13m} web-1 postgres[5100]: database system is ready to accept connections`,
  },
  expects: { names: [['out of memory', 'oom'], ['monthly.py', '7731'], 'postgres'] },
  good: {
    calls: [
      ['journal', { unit: 'postgresql.service' }, 'signal 9: Killed'],
      ['journal', { minutes: 60 }, 'Out of memory: Killed process 5120 (postgres)'],
      ['run_readonly', { argv: ['ps', 'aux'] }, 'monthly.py'],
    ],
    says: `The kernel ran out of memory 14 minutes ago and killed postgres (journal: "Killed process 5120").
monthly.py, pid 7731, caused it: it holds 9.4 GB (ps) and still runs, so it may happen again. Stop it.`,
  },
  bad: {
    calls: [['journal', { unit: 'postgresql.service' }]],
    says: 'Somebody ended postgres by signal 9. It is up again, so nothing needs to be done.',
  },
}
