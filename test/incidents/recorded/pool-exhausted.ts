import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'All connections wait in open transactions; an ageing certificate looks guilty',
  kind: 'herring',
  alert: `{"alerts":[{"status":"firing","labels":{"alertname":"ShopSlow"},
"annotations":{"summary":"shop answers after 30 s or not at all, since {-26m}"}}]}`,
  services: [
    {
      name: 'shop',
      checks: [
        { name: 'page', state: 'fail', since_min: 26, page: '/health' },
        {
          name: 'certificate',
          state: 'warn',
          since_min: 2_000,
          says: 'certificate expires in 9 days',
        },
      ],
      operations: ['restart-shop'],
    },
    { name: 'database', checks: [{ name: 'port', state: 'ok', since_min: 90_000 }] },
  ],
  pages: {
    '/health': [
      503,
      'timeout: no connection from the pool within 30 s (20 of 20 in use, 341 wait)\n',
    ],
  },
  programs: {
    psql: [
      {
        prints: ` pid  | application | state               | xact_start | wait_event | query
 6001 | invoices    | idle in transaction | {-27m}     | ClientRead | select * from orders for update
 6002 | shop        | active              | {-26m}     | transactionid | update orders set paid = true where id = 1
 6003 | shop        | active              | {-26m}     | transactionid | update orders set paid = true where id = 2
(17 more of shop, all waiting for 6001)`,
      },
    ],
  },
  journal: {
    'invoices.service': `{-27m} web-1 invoices[440]: run of the month: 48,000 orders
{-27m} web-1 invoices[440]: waiting for the printer lpd://printer-3 (offline)`,
    'shop.service': '{-26m} web-1 shop[900]: pool: no connection within 30 s',
  },
  expects: { names: ['idle in transaction', ['6001', 'invoices'], ['pool', 'connections']] },
  good: {
    calls: [
      ['http_get', { url: '{page}/health' }, '20 of 20 in use'],
      [
        'run_readonly',
        { argv: ['psql', '-c', 'select * from pg_stat_activity'] },
        'idle in transaction',
      ],
      ['journal', { unit: 'invoices.service' }, 'waiting for the printer'],
    ],
    says: `All 20 connections of the pool wait for pid 6001 of invoices, which is idle in transaction for 27 minutes with
orders locked (pg_stat_activity); it waits for printer-3, which is offline (journal). End 6001. The certificate
that expires in 9 days is another matter.`,
  },
  bad: {
    calls: [['run_check', { service: 'shop', check: 'certificate' }]],
    says: 'The certificate of the shop expires soon, so connections fail. Renew it.',
  },
}
