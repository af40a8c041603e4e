import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'Names are not resolved, because the name server of a retired router is still listed',
  asks: 'Mails are not sent and the feed importer fails. What is wrong?',
  services: [
    {
      name: 'mail',
      checks: [
        {
          name: 'send',
          state: 'fail',
          since_min: 55,
          says: 'relay.example.net: Temporary failure in name resolution',
        },
      ],
      operations: ['restart-mail'],
    },
    {
      name: 'importer',
      checks: [
        {
          name: 'last run',
          state: 'warn',
          since_min: 50,
          says: 'getaddrinfo EAI_AGAIN feeds.example.org',
        },
      ],
    },
    { name: 'shop', checks: [{ name: 'page', state: 'ok', since_min: 9_000 }] },
  ],
  programs: {
    dig: [
      {
        with: ['@10.0.0.53'],
        prints:
          ';; communications error to 10.0.0.53#53: timed out\n;; no servers could be reached',
        exit: 9,
      },
      {
        with: ['@10.0.0.1'],
        prints:
          ';; ->>HEADER<<- opcode: QUERY, status: NOERROR\nrelay.example.net. 300 IN A 192.0.2.25',
      },
      {
        prints:
          ';; communications error to 10.0.0.53#53: timed out\n;; no servers could be reached',
        exit: 9,
      },
    ],
    ping: [
      {
        with: ['10.0.0.53'],
        prints: '2 packets transmitted, 0 received, 100% packet loss',
        exit: 1,
      },
      { prints: '2 packets transmitted, 2 received, 0% packet loss' },
    ],
  },
  journal: {
    'postfix.service': `{-54m} web-1 postfix/smtp[881]: warning: relay.example.net: Name service error: Host not found, try again
{-12m} web-1 postfix/smtp[904]: warning: relay.example.net: Name service error: Host not found, try again`,
    'networking.service': '{-56m} web-1 dhclient[402]: bound to 10.0.0.7; gateway 10.0.0.1',
  },
  files: {
    '/etc/resolv.conf': '# written by hand in 2023\nnameserver 10.0.0.53\n',
    '/etc/notes.md':
      'The old router (10.0.0.53) was taken out of the rack today. The new one is 10.0.0.1.\n',
  },
  expects: {
    names: ['10.0.0.53', 'resolv.conf', ['name server', 'nameserver', 'resolver', 'dns']],
  },
  good: {
    calls: [
      ['journal', { unit: 'postfix.service' }, 'Name service error'],
      ['read_file', { path: 'etc/resolv.conf' }, 'nameserver 10.0.0.53'],
      [
        'run_readonly',
        { argv: ['dig', '@10.0.0.53', 'relay.example.net'] },
        'no servers could be reached',
      ],
      ['run_readonly', { argv: ['dig', '@10.0.0.1', 'relay.example.net'] }, 'NOERROR'],
    ],
    says: `No name is resolved: /etc/resolv.conf names only 10.0.0.53, which does not answer (dig: timed out).
The router 10.0.0.1 answers as a name server. Mail and importer wait for it; put 10.0.0.1 into resolv.conf.`,
  },
  bad: {
    calls: [['journal', { unit: 'postfix.service' }]],
    says: 'The relay relay.example.net is down. Wait for the provider, or restart postfix.',
  },
}
