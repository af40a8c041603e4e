import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A service does not start, because a forgotten program holds its port',
  asks: 'The shop does not come up after the restart.',
  services: [
    {
      name: 'shop',
      checks: [
        { name: 'page', state: 'fail', since_min: 9, page: '/health' },
        { name: 'unit', state: 'fail', since_min: 9, says: 'shop.service is failed' },
      ],
      operations: ['restart-shop'],
    },
  ],
  pages: { '/health': [404, 'Cannot GET /health (anna-dev)\n'] },
  programs: {
    ss: [
      {
        prints: `State  Local Address:Port Process
LISTEN 0.0.0.0:443     users:(("nginx",pid=700,fd=6))
LISTEN 0.0.0.0:8080    users:(("node",pid=4711,fd=18))`,
      },
    ],
    ps: [
      {
        prints: `  PID USER STARTED COMMAND
 4711 anna {-3h}   node /home/anna/shop/dev-server.js
  700 root {-30d}  nginx: master process`,
      },
    ],
  },
  journal: {
    'shop.service': `{-9m} web-1 systemd[1]: Stopped shop.service
{-9m} web-1 shop[9011]: Error: listen EADDRINUSE: address already in use 0.0.0.0:8080
{-8m} web-1 systemd[1]: shop.service: Start request repeated too quickly.`,
  },
  expects: { names: ['8080', ['4711', 'dev-server'], 'anna'] },
  good: {
    calls: [
      ['journal', { unit: 'shop.service' }, 'EADDRINUSE'],
      ['run_readonly', { argv: ['ss', '-ltnp'] }, 'pid=4711'],
      ['run_readonly', { argv: ['ps', '-p', '4711'] }, 'dev-server.js'],
    ],
    says: `shop.service can't bind port 8080 (journal: EADDRINUSE): pid 4711 holds it, a dev-server.js that anna
started 3 hours ago (ss, ps). Ask anna to end it, then start the shop.`,
  },
  bad: {
    calls: [['journal', { unit: 'shop.service' }]],
    says: 'The shop was restarted too quickly. Port 8080 will be free soon: reset the unit and start it again.',
  },
}
