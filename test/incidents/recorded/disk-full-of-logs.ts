import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'The disk of logs is full, because a program logs for debugging',
  asks: 'The shop stopped to write orders. Why, and what should we do?',
  host: { disks: { '/': 38, '/var': 100 } },
  services: [
    {
      name: 'host',
      checks: [
        {
          name: 'disk /var',
          state: 'fail',
          since_min: 31,
          says: '100 % of the space used, expected 90 % at most',
          before: [
            { state: 'ok', since_min: 9_000 },
            { state: 'warn', since_min: 75, says: '91 % of the space used' },
          ],
        },
        { name: 'memory', state: 'ok', since_min: 9_000 },
      ],
    },
    {
      name: 'shop',
      checks: [{ name: 'page', state: 'fail', since_min: 29, page: '/health' }],
    },
  ],
  pages: { '/health': [500, 'cannot write order: no space left on device\n'] },
  programs: {
    df: [
      {
        with: ['-i'],
        prints: `Filesystem      Inodes   IUsed    IFree IUse% Mounted on
/dev/sda1     13107200  311420 12795780    3% /
/dev/sdb1     13107200   82110 13025090    1% /var`,
      },
      {
        prints: `Filesystem      Size  Used Avail Use% Mounted on
/dev/sda1       200G   76G  114G  40% /
/dev/sdb1       200G  200G     0 100% /var`,
      },
    ],
    du: [
      {
        prints: `161G	/var/log/shop
161G	/var/log/shop/app.log
1.1G	/var/log/journal
24G	/var/lib/postgresql
188G	/var`,
      },
    ],
  },
  journal: {
    'shop.service': `{-85m} web-1 shop[4410]: starting release 3.8.1, LOG_LEVEL=debug from /etc/shop/env
{-85m} web-1 shop[4410]: listening on 8080
{-31m} web-1 shop[4410]: order 99120 not written: ENOSPC: no space left on device`,
  },
  files: {
    '/etc/shop/env': `# changed by anna for the hunt after ticket 512
LOG_LEVEL=debug
DATABASE_URL=socket`,
  },
  expects: { names: ['/var', 'app.log', 'debug'] },
  good: {
    calls: [
      ['run_check', { service: 'shop' }, '500'],
      ['run_readonly', { argv: ['df', '-h'] }, '100% /var'],
      ['run_readonly', { argv: ['du', '-h', '/var'] }, '/var/log/shop/app.log'],
      ['read_file', { path: 'etc/shop/env' }, 'LOG_LEVEL=debug'],
    ],
    says: `The shop can't write orders because /var is full (df: 100 %). /var/log/shop/app.log has 161 GB
(du) since release 3.8.1 was started with LOG_LEVEL=debug (etc/shop/env). Set the level back, restart
the shop and truncate the log.`,
  },
  bad: {
    calls: [['run_readonly', { argv: ['df', '-i'] }]],
    says: 'The shop fails because /var has no inodes left. Delete small files below /var/lib/php/sessions.',
  },
}
