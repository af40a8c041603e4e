import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A change has no effect, because the reload was refused',
  asks: 'We moved /old to /new an hour ago, but visitors still get the old page.',
  services: [
    {
      name: 'web',
      checks: [
        { name: 'page', state: 'ok', since_min: 9_000 },
        {
          name: 'redirect',
          state: 'warn',
          since_min: 58,
          says: '/old answered 200, expected 301',
        },
      ],
      operations: ['restart-nginx'],
    },
  ],
  programs: {
    nginx: [
      {
        prints: `nginx: [emerg] unknown directive "retrun" in /etc/nginx/sites/web.conf:12
nginx: configuration file /etc/nginx/nginx.conf test failed`,
        exit: 1,
      },
    ],
  },
  journal: {
    'nginx.service': `{-60m} web-1 nginx[5510]: [emerg] unknown directive "retrun" in /etc/nginx/sites/web.conf:12
{-60m} web-1 systemd[1]: Reload failed for nginx.service.`,
  },
  files: { '/etc/nginx/sites/web.conf': 'server {\n  location /old { retrun 301 /new; }\n}\n' },
  expects: {
    names: ['retrun', ['web.conf'], ['reload', 'restart']],
    never_runs: ['restart-nginx'],
  },
  good: {
    calls: [
      ['journal', { unit: 'nginx.service' }, 'unknown directive "retrun"'],
      ['read_file', { path: 'etc/nginx/sites/web.conf' }, 'retrun 301'],
    ],
    says: `nginx still runs with its former configuration: the reload an hour ago failed for "retrun" in
/etc/nginx/sites/web.conf:12 (journal). Write return and reload. Until then a restart would take the site down.`,
  },
  bad: {
    calls: [['run_check', { service: 'web' }]],
    says: 'Visitors have the old page in the cache of their browsers. Wait, or send Cache-Control: no-store.',
  },
}
