import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A proxy gives up before the service has answered',
  asks: 'Exports of large accounts end with 504 since the new proxy.',
  services: [
    {
      name: 'export',
      checks: [
        { name: 'small export', state: 'ok', since_min: 9_000 },
        { name: 'large export', state: 'fail', since_min: 1_500, says: 'answered 504 after 60 s' },
      ],
      operations: ['restart-export'],
    },
  ],
  journal: {
    'nginx.service': `{-1d} web-1 nginx[700]: upstream timed out (110: Connection timed out) while reading response header from upstream, request: "GET /export/41", upstream: "http://127.0.0.1:9100"
{-9m} web-1 nginx[700]: upstream timed out (110: Connection timed out) while reading response header from upstream, request: "GET /export/77", upstream: "http://127.0.0.1:9100"`,
    'export.service': `{-1d} web-1 export[815]: /export/41 done in 94 s, client gone
{-9m} web-1 export[815]: /export/77 done in 88 s, client gone
{-8m} web-1 export[815]: /export/3 done in 2 s`,
  },
  files: {
    '/etc/nginx/sites/export.conf': `location /export/ {
  proxy_pass http://127.0.0.1:9100;
  proxy_read_timeout 60s;
}
`,
    '/root/old-proxy.cfg': 'backend export\n  timeout server 300s\n',
  },
  expects: {
    names: [
      ['proxy_read_timeout', '60 s', '60s'],
      'nginx',
      ['94 s', '94s', '88 s', '88 to', '90 s', '90s'],
    ],
  },
  good: {
    calls: [
      ['journal', { unit: 'nginx.service' }, 'upstream timed out'],
      ['journal', { unit: 'export.service' }, 'done in 94 s, client gone'],
      ['read_file', { path: 'etc/nginx/sites/export.conf' }, 'proxy_read_timeout 60s'],
    ],
    says: `nginx gives up after 60 s (proxy_read_timeout in export.conf), and large exports take 88 to 94 s (journal of
export: "client gone"). The old proxy waited 300 s. Raise the timeout, or answer at once and let people fetch it.`,
  },
  bad: {
    calls: [['journal', { unit: 'nginx.service' }]],
    says: 'The export service hangs and must be restarted.',
  },
}
