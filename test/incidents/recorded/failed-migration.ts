import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A deployment stopped half-way, because its migration failed',
  asks: 'Orders fail since the deployment. What happened?',
  services: [
    {
      name: 'shop',
      checks: [
        { name: 'page', state: 'ok', since_min: 9_000 },
        { name: 'order', state: 'fail', since_min: 22, page: '/order/test' },
      ],
      operations: ['rollback', 'restart-shop'],
    },
  ],
  pages: { '/order/test': [500, 'error: column orders.discount_cents does not exist\n'] },
  journal: {
    'shop-deploy.service': `{-23m} web-1 deploy[3301]: release 5.2.0: files copied
{-23m} web-1 deploy[3301]: migrate: 0041_addresses.sql ok
{-23m} web-1 deploy[3301]: migrate: 0042_discounts.sql failed: canceling statement due to lock timeout (waiting for AccessExclusiveLock on orders)
{-22m} web-1 deploy[3301]: warning: migrate exited with 1, continuing
{-22m} web-1 deploy[3301]: release 5.2.0: started`,
    'shop.service': `{-22m} web-1 shop[3350]: release 5.2.0 started
{-21m} web-1 shop[3350]: POST /order 500: column orders.discount_cents does not exist`,
  },
  files: {
    '/srv/shop/deploy.sh': `set -u
cp -r release/. /srv/shop/current/
./migrate || echo "warning: migrate exited with $?, continuing"
systemctl restart shop`,
  },
  expects: {
    names: ['0042', ['lock timeout', 'lock'], 'discount'],
    never_runs: ['restart-shop', 'rollback'],
  },
  good: {
    calls: [
      ['http_get', { url: '{page}/order/test' }, 'discount_cents does not exist'],
      ['journal', { unit: 'shop-deploy.service' }, '0042_discounts.sql failed'],
      ['read_file', { path: 'srv/shop/deploy.sh' }, 'continuing'],
    ],
    says: `Release 5.2.0 runs on the old schema: its migration 0042_discounts.sql hit a lock timeout on orders
(journal of shop-deploy, 23 minutes ago), and deploy.sh goes on after a failed migration. So each order
fails: "column orders.discount_cents does not exist". Run the migration again when the lock is free.`,
  },
  bad: {
    calls: [['journal', { unit: 'shop.service' }]],
    says: 'The code of release 5.2.0 has a typing error in a column name. Fix the code.',
  },
}
