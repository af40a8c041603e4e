import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A certificate has expired, because its renewal has failed for weeks',
  alert: `{"status":"firing","labels":{"alertname":"TLSExpired","host":"shop.example.com"},
"annotations":{"summary":"shop.example.com: x509 error since {-20m}"}}`,
  services: [
    {
      name: 'shop',
      description: 'nginx with a certificate of certbot',
      checks: [
        {
          name: 'tls',
          state: 'fail',
          since_min: 20,
          says: 'certificate expired at {-20m}',
          before: [
            { state: 'ok', since_min: 40_000 },
            { state: 'warn', since_min: 20_000, says: 'certificate expires in 13 days' },
          ],
        },
        { name: 'port 443', state: 'ok', since_min: 40_000 },
      ],
      operations: ['restart-nginx'],
    },
  ],
  programs: {
    certbot: [
      {
        prints: `Found the following certs:
  Certificate Name: shop.example.com
    Expiry Date: {-20m} (INVALID: EXPIRED)
    Certificate Path: /etc/letsencrypt/live/shop.example.com/fullchain.pem`,
      },
    ],
  },
  journal: {
    'certbot.service': `{-14d} web-1 certbot[811]: Renewing an existing certificate for shop.example.com
{-14d} web-1 certbot[811]: Failed to renew certificate shop.example.com with error: Could not bind TCP port 80 because it is already in use by another process on this system
{-1d} web-1 certbot[2210]: Failed to renew certificate shop.example.com with error: Could not bind TCP port 80 because it is already in use by another process on this system`,
    'nginx.service': `{-30d} web-1 nginx[700]: started, listening on 80 and 443`,
  },
  files: {
    '/etc/letsencrypt/renewal/shop.example.com.conf': `[renewalparams]
authenticator = standalone
server = https://acme-v02.api.letsencrypt.org/directory`,
  },
  expects: {
    names: ['expired', ['port 80', 'standalone'], ['renew', 'certbot']],
    never_runs: ['restart-nginx'],
  },
  good: {
    calls: [
      ['run_check', { service: 'shop', check: 'tls' }, 'certificate expired'],
      ['journal', { unit: 'certbot.service' }, 'Could not bind TCP port 80'],
      ['read_file', { path: 'etc/letsencrypt/renewal/shop.example.com.conf' }, 'standalone'],
    ],
    says: `The certificate of shop.example.com expired 20 minutes ago. certbot could not renew it for 14 days:
its journal says that port 80 is in use, because the renewal is set to standalone and nginx holds the port.
Set the authenticator to nginx or webroot, and renew.`,
  },
  bad: {
    calls: [['run_check', { service: 'shop' }]],
    says: 'The certificate of shop.example.com has expired. Restart nginx so that it loads a new one.',
  },
}
