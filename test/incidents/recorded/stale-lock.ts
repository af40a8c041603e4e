import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'An import waits for a lock of a process that is gone',
  asks: 'The stock import has not run since the power cut.',
  host: { uptime_h: 26 },
  services: [
    {
      name: 'stock',
      checks: [
        {
          name: 'last import',
          state: 'fail',
          since_min: 1_440,
          says: 'last import 26 h ago, expected 1 h at most',
        },
      ],
      operations: ['run-import'],
    },
  ],
  programs: {
    ps: [{ prints: '  PID COMMAND\n 1002 node /srv/shop/server.js\n  700 nginx: master process' }],
  },
  journal: {
    'stock-import.service': `{-25h} web-1 import[610]: another import runs (lock of pid 2210), leaving
{-1h} web-1 import[3301]: another import runs (lock of pid 2210), leaving`,
  },
  files: {
    '/var/lib/stock/import.lock': '2210 {-27h}\n',
    '/srv/stock/import.sh':
      '[ -e /var/lib/stock/import.lock ] && { echo "another import runs"; exit 0; }\n',
  },
  expects: {
    names: ['import.lock', '2210', ['stale', 'gone', 'does not exist', 'no longer', 'not run']],
    never_runs: ['run-import'],
  },
  good: {
    calls: [
      ['journal', { unit: 'stock-import.service' }, 'lock of pid 2210'],
      ['read_file', { path: 'var/lib/stock/import.lock' }, '2210'],
      ['run_readonly', { argv: ['ps', 'ax'] }, 'nginx: master'],
    ],
    says: `Each import leaves at once because of /var/lib/stock/import.lock: it is of pid 2210, written an hour before the
power cut, and no such process exists (ps): it is stale. Remove the file. import.sh should check the pid.`,
  },
  bad: {
    calls: [['journal', { unit: 'stock-import.service' }]],
    says: 'Another import runs already and takes long. Wait until it has ended.',
  },
}
