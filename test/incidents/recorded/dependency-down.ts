import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A provider is down; nothing of ours is wrong',
  alert:
    '{"title":"checkout: success rate 3 %","state":"alerting","startsAt":"{-18m}","service":"shop"}',
  services: [
    {
      name: 'shop',
      checks: [
        { name: 'page', state: 'ok', since_min: 9_000 },
        { name: 'checkout', state: 'fail', since_min: 18, page: '/checkout/test' },
      ],
      operations: ['restart-shop'],
    },
  ],
  pages: {
    '/checkout/test': [502, 'payment provider: 503 Service Unavailable\n'],
    '/provider-status': [
      200,
      'payfast.example: major outage of card payments since {-19m}, under investigation\n',
    ],
  },
  journal: {
    'shop.service': `{-2d} web-1 shop[900]: release 7.1.0 started
{-18m} web-1 shop[900]: payfast.example answered 503 after 30 s, order 5512 kept as unpaid
{-1m} web-1 shop[900]: payfast.example answered 503 after 30 s, order 5533 kept as unpaid`,
  },
  files: {
    '/srv/shop/providers.txt':
      'payments: payfast.example, its status is mirrored at /provider-status\n',
  },
  expects: { names: ['payfast', ['outage', 'down', '503']] },
  good: {
    calls: [
      ['journal', { unit: 'shop.service', minutes: 60 }, 'payfast.example answered 503'],
      ['read_file', { path: 'srv/shop/providers.txt' }, '/provider-status'],
      ['http_get', { url: '{page}/provider-status' }, 'major outage'],
    ],
    says: `Checkout fails because payfast.example has a major outage since 19 minutes ago (its status page; the shop
logs 503 for each payment). Nothing of ours is wrong, and orders are kept as unpaid. Wait, and tell customers.`,
  },
  bad: {
    calls: [['run_check', { service: 'shop' }]],
    says: 'The checkout of the shop gives 502. Restart the shop.',
  },
}
