import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A site fails for some people: its AAAA record leads to an old machine',
  asks: 'Some customers say that the shop is down. For us it works.',
  services: [
    {
      name: 'shop',
      checks: [
        { name: 'page over IPv4', state: 'ok', since_min: 9_000 },
        {
          name: 'page over IPv6',
          state: 'fail',
          since_min: 700,
          says: 'connect ECONNREFUSED 2001:db8:10::7',
        },
      ],
      operations: ['restart-nginx'],
    },
  ],
  programs: {
    dig: [
      { with: ['AAAA'], prints: 'shop.example.com. 3600 IN AAAA 2001:db8:10::7' },
      { prints: 'shop.example.com. 3600 IN A 198.51.100.20' },
    ],
    ip: [
      {
        prints: `2: eth0: <UP>
    inet 198.51.100.20/24 scope global eth0
    inet6 2001:db8:22::20/64 scope global`,
      },
    ],
    ss: [
      {
        prints:
          'LISTEN 0.0.0.0:443 users:(("nginx",pid=700))\nLISTEN [::]:443 users:(("nginx",pid=700))',
      },
    ],
  },
  files: {
    '/root/moves.md':
      'The servers moved to the new rack 12 hours ago: v6 prefix 2001:db8:22::/64 instead of 2001:db8:10::/64.\n',
  },
  expects: { names: [['ipv6', 'aaaa'], '2001:db8:10::7', ['2001:db8:22::20', 'old']] },
  good: {
    calls: [
      ['run_check', { service: 'shop' }, 'ECONNREFUSED 2001:db8:10::7'],
      ['run_readonly', { argv: ['dig', 'AAAA', 'shop.example.com'] }, '2001:db8:10::7'],
      ['run_readonly', { argv: ['ip', 'addr'] }, '2001:db8:22::20'],
    ],
    says: `Only IPv6 is down: the AAAA record of shop.example.com is 2001:db8:10::7 (dig), and the host has
2001:db8:22::20 since its move (ip addr). IPv4 works. Change the AAAA record.`,
  },
  bad: {
    calls: [['run_readonly', { argv: ['ss', '-ltn'] }]],
    says: 'nginx listens on both families and answers, so the customers have a problem of their own.',
  },
}
