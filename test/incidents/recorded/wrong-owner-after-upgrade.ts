import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A service may not write any more, because an upgrade gave its folder to root',
  asks: 'Uploads to the wiki fail since this morning.',
  services: [
    {
      name: 'wiki',
      checks: [
        { name: 'page', state: 'ok', since_min: 9_000 },
        { name: 'upload', state: 'fail', since_min: 280, says: 'EACCES: permission denied' },
      ],
      operations: ['restart-wiki'],
    },
  ],
  programs: {
    ls: [
      {
        prints: `drwxr-xr-x  2 root root 4096 {-280m} /var/lib/wiki/uploads
drwxr-x---  6 wiki wiki 4096 {-90d}  /var/lib/wiki
-rw-r-----  1 wiki wiki  812 {-90d}  /var/lib/wiki/wiki.conf`,
      },
    ],
    id: [{ prints: 'uid=998(wiki) gid=998(wiki) groups=998(wiki)' }],
  },
  journal: {
    'wiki.service': `{-279m} web-1 wiki[660]: upload of plan.pdf failed: EACCES: permission denied, open '/var/lib/wiki/uploads/plan.pdf'`,
    'apt-daily-upgrade.service':
      '{-280m} web-1 unattended-upgrades[501]: Packages that were upgraded: wiki (4.1.0-1 to 4.2.0-1)',
  },
  files: {
    '/var/log/dpkg.log':
      '{-280m} upgrade wiki:all 4.1.0-1 4.2.0-1\n{-280m} status installed wiki:all 4.2.0-1\n',
  },
  expects: { names: ['/var/lib/wiki/uploads', 'root', ['upgrade', '4.2.0']] },
  good: {
    calls: [
      ['journal', { unit: 'wiki.service' }, 'EACCES'],
      ['run_readonly', { argv: ['ls', '-ld', '/var/lib/wiki/uploads'] }, 'root root'],
      ['read_file', { path: 'var/log/dpkg.log' }, 'upgrade wiki'],
    ],
    says: `The wiki (user wiki) can't write to /var/lib/wiki/uploads, which belongs to root since the upgrade to 4.2.0
280 minutes ago (ls -ld, dpkg.log). Give it back: chown wiki:wiki, and report it to the package.`,
  },
  bad: {
    calls: [['journal', { unit: 'wiki.service' }]],
    says: 'The file plan.pdf is write-protected on the computer of the user. Restart the wiki if it happens again.',
  },
}
