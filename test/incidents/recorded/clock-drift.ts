import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'Tokens are refused, because the clock runs ahead; a deployment looks guilty',
  kind: 'herring',
  asks: 'Sign-ins fail with "token used before issued". We deployed auth today. Roll it back?',
  services: [
    {
      name: 'auth',
      checks: [
        { name: 'sign-in', state: 'fail', since_min: 48, says: 'token used before issued' },
        { name: 'port', state: 'ok', since_min: 9_000 },
      ],
      operations: ['rollback-auth'],
    },
    {
      name: 'host',
      checks: [
        {
          name: 'unit chrony',
          state: 'warn',
          since_min: 2_900,
          says: 'chrony.service is inactive',
        },
      ],
    },
  ],
  programs: {
    chronyc: [{ prints: '506 Cannot talk to daemon', exit: 1 }],
    timedatectl: [
      {
        prints: `               Local time: {-0m}
System clock synchronized: no
              NTP service: inactive`,
      },
    ],
    curl: [
      {
        prints: `HTTP/2 200
date: {-7m}
server: clock.example.org`,
      },
    ],
  },
  journal: {
    'auth.service': `{-5h} web-1 auth[612]: release 1.9.0 started
{-5h} web-1 auth[612]: warning: config key "legacy_issuer" is deprecated
{-4h} web-1 auth[612]: sign-in of u-88 ok
{-48m} web-1 auth[612]: sign-in of u-12 refused by api: iat is 301 s ahead of the verifier, 300 s allowed
{-3m} web-1 auth[612]: sign-in of u-40 refused by api: iat is 420 s ahead of the verifier, 300 s allowed`,
    'chrony.service': '{-2d} web-1 systemd[1]: Stopped chrony.service - NTP client/server.',
  },
  expects: {
    names: [
      ['clock', 'time'],
      ['chrony', 'ntp'],
      ['ahead', 'drift', '420'],
    ],
    never: ['roll back auth.'],
  },
  good: {
    calls: [
      ['journal', { unit: 'auth.service' }, 'iat is 420 s ahead'],
      ['run_readonly', { argv: ['timedatectl'] }, 'synchronized: no'],
      ['journal', { unit: 'chrony.service' }, 'Stopped chrony.service'],
    ],
    says: `The clock of this host runs 420 s ahead, more than the 300 s that verifiers allow (journal of auth).
chrony was stopped two days ago, so nothing corrects it (timedatectl). Release 1.9.0 is not the cause:
sign-ins worked for an hour with it. Start chrony.`,
  },
  bad: {
    calls: [['journal', { unit: 'auth.service', minutes: 400 }]],
    says: 'Release 1.9.0 of auth uses the deprecated legacy_issuer and breaks its tokens. Roll back auth.',
  },
}
