import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'Browsers work and programs do not: the intermediate certificate is missing',
  asks: 'The partner says our API has a bad certificate. Browsers are fine with it.',
  services: [
    {
      name: 'api',
      checks: [
        { name: 'page', state: 'ok', since_min: 9_000 },
        {
          name: 'partner call',
          state: 'fail',
          since_min: 610,
          says: 'unable to get local issuer certificate',
        },
      ],
      operations: ['restart-nginx'],
    },
  ],
  programs: {
    openssl: [
      {
        with: ['s_client'],
        prints: `depth=0 CN = api.example.com
verify error:num=20:unable to get local issuer certificate
Certificate chain
 0 s:CN = api.example.com
   i:C = US, O = Example CA, CN = Example R11
Verify return code: 21 (unable to verify the first certificate)`,
      },
      {
        prints:
          'notBefore={-10h}\nsubject=CN = api.example.com\nissuer=C = US, O = Example CA, CN = Example R11',
      },
    ],
  },
  files: {
    '/etc/nginx/sites/api.conf':
      'ssl_certificate /etc/ssl/api/cert.pem;\nssl_certificate_key /etc/ssl/api/key.pem;\n',
    '/etc/ssl/api/README':
      'cert.pem: the certificate alone; fullchain.pem: with the intermediate R11\n',
  },
  expects: {
    names: [
      ['intermediate', 'chain'],
      ['fullchain', 'R11'],
      ['cert.pem', 'ssl_certificate'],
    ],
  },
  good: {
    calls: [
      [
        'run_readonly',
        { argv: ['openssl', 's_client', '-connect', 'api.example.com:443'] },
        'unable to verify the first',
      ],
      ['read_file', { path: 'etc/nginx/sites/api.conf' }, '/etc/ssl/api/cert.pem'],
      ['read_file', { path: 'etc/ssl/api/README' }, 'fullchain.pem'],
    ],
    says: `The server sends its own certificate without the intermediate R11 (openssl: code 21), because nginx uses
cert.pem. Browsers find the intermediate by themselves, programs don't. Use fullchain.pem and reload.`,
  },
  bad: {
    calls: [['run_check', { service: 'api' }]],
    says: 'The partner has an outdated list of authorities and must update it.',
  },
}
