import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A new release fails for one kind of request',
  alert: `{"receiver":"ops","status":"firing","alerts":[{"labels":{"alertname":"Http5xx","service":"shop"},
"annotations":{"description":"5xx rate of shop is 11 % for 10 minutes"},"startsAt":"{-15m}"}]}`,
  services: [
    {
      name: 'shop',
      checks: [
        { name: 'page', state: 'ok', since_min: 9_000 },
        { name: 'cart', state: 'fail', since_min: 24, page: '/cart' },
      ],
      operations: ['restart-shop'],
    },
    { name: 'database', checks: [{ name: 'port', state: 'ok', since_min: 90_000 }] },
  ],
  pages: {
    '/cart': [500, 'internal server error\n'],
    '/metrics': [
      200,
      `http_requests_total{route="/",status="200"} 91220
http_requests_total{route="/cart",status="200",currency="EUR"} 4410
http_requests_total{route="/cart",status="500",currency="CHF"} 530
process_start_time_seconds 1
`,
    ],
  },
  journal: {
    'shop.service': `{-2d} web-1 shop[1200]: release 2.13.4 started
{-25m} web-1 shop[2900]: release 2.14.0 started
{-24m} web-1 shop[2900]: GET /cart 500: TypeError: Cannot read properties of undefined (reading 'rate') at rates.ts:41, currency CHF
{-2m} web-1 shop[2900]: GET /cart 500: TypeError: Cannot read properties of undefined (reading 'rate') at rates.ts:41, currency CHF`,
  },
  files: {
    '/srv/shop/CHANGES':
      '2.14.0: rates come from rates.json of the finance team\n2.13.4: new favicon\n',
    '/srv/shop/rates.json': '{"EUR": {"rate": 1}, "USD": {"rate": 1.09}}\n',
  },
  expects: { names: ['2.14.0', 'CHF', ['rates.json', 'rates.ts']] },
  good: {
    calls: [
      ['journal', { unit: 'shop.service', minutes: 60 }, 'currency CHF'],
      ['http_get', { url: '{page}/metrics' }, 'currency="CHF"'],
      ['read_file', { path: 'srv/shop/rates.json' }, 'USD'],
    ],
    says: `Release 2.14.0, started 25 minutes ago, fails for carts in CHF: rates.ts:41 reads a rate that rates.json
does not have (journal, file). Carts in EUR work (metrics). Add CHF to rates.json, or go back to 2.13.4.`,
  },
  bad: {
    calls: [['run_check', { service: 'database' }]],
    says: 'The 5xx rate of shop comes from an overloaded database. Restart the shop.',
  },
}
