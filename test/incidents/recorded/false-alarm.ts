import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'All is well: the probe of the monitoring had lost its own network',
  alert: `{"status":"firing","labels":{"alertname":"ShopDown","instance":"probe-2"},
"annotations":{"summary":"shop.example.com unreachable from probe-2"},"startsAt":"{-11m}"}`,
  services: [
    {
      name: 'shop',
      description: 'watched by probe-1 and probe-2, each at another provider',
      checks: [
        { name: 'page', state: 'ok', since_min: 52_000, page: '/health' },
        { name: 'certificate', state: 'ok', since_min: 52_000 },
        { name: 'port 443', state: 'ok', since_min: 52_000 },
      ],
      operations: ['restart-shop'],
    },
  ],
  pages: {
    '/health': [200, 'ok\n'],
    '/probes': [
      200,
      `probe-1: 11 of 11 requests ok since {-11m}
probe-2: 0 of 11 requests ok since {-11m}; also unreachable from it: example.org, example.net, its own gateway
`,
    ],
  },
  journal: { 'nginx.service': '{-5m} web-1 nginx[700]: 4,122 requests in 10 min, 0 errors' },
  expects: {
    names: [
      'probe-2',
      ['false alarm', 'all is well', 'nothing is wrong', 'works'],
      ['gateway', 'own network', '0 errors'],
    ],
    worst_level: 'info',
  },
  good: {
    calls: [
      ['run_check', { service: 'shop' }, 'ok page'],
      ['journal', { unit: 'nginx.service' }, '0 errors'],
      ['http_get', { url: '{page}/probes' }, 'its own gateway'],
    ],
    says: `A false alarm: the shop works (all checks ok, nginx: 4,122 requests and 0 errors in 10 minutes, probe-1 reaches
it). probe-2 has lost its own network: it does not even reach its gateway. Look at probe-2.`,
  },
  bad: {
    calls: [
      [
        'record_event',
        { level: 'critical', service: 'shop', message: 'The shop is down, as probe-2 says.' },
      ],
    ],
    says: 'The shop is unreachable from outside, as probe-2 says. All is well inside, so look at the firewall.',
  },
}
