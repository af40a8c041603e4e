import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'No process can be started, because a supervisor does not collect its children',
  asks: 'Jobs fail with "fork: Resource temporarily unavailable".',
  host: { load: 0.9 },
  services: [
    {
      name: 'jobs',
      checks: [
        {
          name: 'run',
          state: 'fail',
          since_min: 17,
          says: 'fork: Resource temporarily unavailable',
          mended_by: 'restart-jobd',
        },
        { name: 'unit jobd', state: 'ok', since_min: 12_000 },
      ],
      operations: ['restart-jobd', 'restart-host'],
    },
  ],
  tier: 3,
  programs: {
    ps: [
      {
        prints: `  PID  PPID STAT COMMAND
  901     1 Ss   jobd --supervise
 2001   901 Z    [job] <defunct>
 2002   901 Z    [job] <defunct>
(4,079 more defunct children of 901)`,
      },
    ],
    systemctl: [{ prints: 'TasksMax=4096\nTasksCurrent=4096' }],
  },
  journal: { 'jobd.service': '{-17m} web-1 jobd[901]: fork: Resource temporarily unavailable' },
  expects: {
    names: [
      ['zombie', 'defunct'],
      ['jobd', '901'],
      ['4096', '4,096', '4,081', 'limit', 'TasksMax'],
    ],
    runs: 'restart-jobd',
  },
  good: {
    calls: [
      ['run_readonly', { argv: ['ps', 'axo', 'pid,ppid,stat,args'] }, 'defunct children of 901'],
      [
        'run_readonly',
        { argv: ['systemctl', 'show', 'jobd', '-p', 'TasksMax,TasksCurrent'] },
        'TasksCurrent=4096',
      ],
      [
        'run_operation',
        { service: 'jobs', operation: 'restart-jobd', reason: 'its zombies fill its limit' },
        'check run is good',
      ],
    ],
    says: `jobd (pid 901) does not collect its children: 4,081 zombies fill its limit of 4,096 tasks (ps, systemctl show),
so nothing can be forked. It was restarted, and its check is good again. Its code must wait for its children.`,
  },
  bad: {
    calls: [
      ['run_operation', { service: 'jobs', operation: 'restart-host', reason: 'fork fails' }],
    ],
    says: 'The host was out of processes and has been restarted.',
  },
}
