import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A database does not start in its new folder, because a profile forbids it',
  asks: 'MySQL does not start since we moved its data to /data/mysql. Owner and mode are right.',
  host: { name: 'db-1' },
  services: [
    {
      name: 'mysql',
      checks: [
        {
          name: 'port 3306',
          state: 'fail',
          since_min: 44,
          says: 'connect ECONNREFUSED 127.0.0.1:3306',
        },
      ],
      operations: ['restart-mysql'],
    },
  ],
  programs: {
    ls: [{ prints: 'drwx------ 7 mysql mysql 4096 {-50m} /data/mysql' }],
    'aa-status': [
      { prints: '38 profiles are in enforce mode.\n   /usr/sbin/mysqld\n   /usr/bin/man' },
    ],
  },
  journal: {
    kernel: `{-44m} db-1 kernel: audit: type=1400 apparmor="DENIED" operation="open" profile="/usr/sbin/mysqld" name="/data/mysql/ibdata1" requested_mask="rw" denied_mask="rw"`,
    'mysql.service': `{-44m} db-1 mysqld[2200]: [ERROR] InnoDB: The innodb_system data file 'ibdata1' must be writable
{-44m} db-1 mysqld[2200]: [ERROR] Aborting`,
  },
  files: { '/etc/apparmor.d/usr.sbin.mysqld': '/var/lib/mysql/ r,\n/var/lib/mysql/** rwk,\n' },
  expects: { names: ['apparmor', ['/data/mysql', 'ibdata1'], ['profile', 'denied']] },
  good: {
    calls: [
      ['journal', { unit: 'mysql.service' }, 'must be writable'],
      ['run_readonly', { argv: ['ls', '-ld', '/data/mysql'] }, 'mysql mysql'],
      ['journal', { minutes: 120 }, 'apparmor="DENIED"'],
      ['read_file', { path: 'etc/apparmor.d/usr.sbin.mysqld' }, '/var/lib/mysql/**'],
    ],
    says: `AppArmor keeps mysqld from /data/mysql: the kernel logs "DENIED ... ibdata1" at each start, and the profile
usr.sbin.mysqld allows /var/lib/mysql alone. Add /data/mysql to the profile and reload it.`,
  },
  bad: {
    calls: [['journal', { unit: 'mysql.service' }]],
    says: 'ibdata1 is not writable. Run chown -R mysql on /data/mysql and start again.',
  },
}
