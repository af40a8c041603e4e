import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A worker leaks memory since a release',
  asks: 'Memory of web-1 has been rising for days. What takes it?',
  host: { memory: 91 },
  services: [
    {
      name: 'host',
      checks: [
        {
          name: 'memory',
          state: 'warn',
          since_min: 140,
          says: '91 % of the memory used',
          before: [{ state: 'ok', since_min: 20_000 }],
        },
      ],
    },
    {
      name: 'thumbnails',
      checks: [{ name: 'metrics', state: 'ok', since_min: 20_000, page: '/metrics' }],
      operations: ['restart-thumbnails'],
    },
  ],
  pages: {
    '/metrics': [
      200,
      `# resident memory of the worker by day
worker_rss_bytes{day="5 days ago",release="1.4.2"} 220000000
worker_rss_bytes{day="4 days ago",release="1.4.2"} 221000000
worker_rss_bytes{day="3 days ago",release="1.5.0"} 3100000000
worker_rss_bytes{day="2 days ago",release="1.5.0"} 5900000000
worker_rss_bytes{day="1 day ago",release="1.5.0"} 8700000000
worker_open_images 41233
`,
    ],
  },
  events: [
    {
      min_ago: 4_330,
      level: 'info',
      service: 'thumbnails',
      message: 'release 1.5.0 deployed by ci',
    },
  ],
  programs: {
    ps: [
      {
        prints: `  PID USER      RSS  STARTED COMMAND
 3120 thumbs 8912000 {-3d}  thumbnails-worker 1.5.0
 5100 postgres 902000 {-30d} postgres: main
 1002 www     310000 {-30d} node /srv/shop/server.js`,
      },
    ],
  },
  expects: { names: [['thumbnails', '3120'], '1.5.0', ['leak', 'grows', 'growing', 'rising']] },
  good: {
    calls: [
      ['run_readonly', { argv: ['ps', 'aux', '--sort=-rss'] }, 'thumbnails-worker 1.5.0'],
      ['read_events', { service: 'thumbnails' }, 'release 1.5.0 deployed'],
      ['http_get', { url: '{page}/metrics' }, 'worker_open_images'],
    ],
    says: `thumbnails-worker (pid 3120) leaks: it has 8.5 GiB (ps), and grows by 2.8 GB a day since release 1.5.0;
1.4.2 stayed at 220 MB (metrics). 41,233 images are open, so it probably does not close them. Go back to 1.4.2.`,
  },
  bad: {
    calls: [['run_readonly', { argv: ['ps', 'aux'] }]],
    says: 'postgres uses 900 MB of shared buffers, which is too much for this host. Lower shared_buffers.',
  },
}
