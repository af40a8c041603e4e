import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A disk has space and no inodes, because old sessions are not removed',
  asks: 'Uploads fail with "no space left on device", but there is space. Why?',
  host: { disks: { '/': 41, '/srv': 52 } },
  services: [
    {
      name: 'wiki',
      checks: [
        { name: 'upload', state: 'fail', since_min: 65, says: 'write: No space left on device' },
      ],
      operations: ['restart-wiki'],
    },
  ],
  programs: {
    df: [
      {
        with: ['-i'],
        prints: `Filesystem      Inodes   IUsed IFree IUse% Mounted on
/dev/sda1     13107200  311420 12795780   3% /
/dev/sdc1      6553600 6553600     0  100% /srv`,
      },
      {
        prints: `Filesystem      Size  Used Avail Use% Mounted on
/dev/sda1       200G   82G  118G  41% /
/dev/sdc1       100G   52G   48G  52% /srv`,
      },
    ],
    du: [
      {
        with: ['--inodes'],
        prints: `6391022	/srv/wiki/sessions
    812	/srv/wiki/uploads
6553600	/srv`,
      },
      { prints: '26G	/srv/wiki/sessions\n25G	/srv/wiki/uploads\n52G	/srv' },
    ],
  },
  journal: {
    'wiki-clean.timer': '{-90d} web-1 systemd[1]: Stopped wiki-clean.timer - removes old sessions',
  },
  expects: { names: ['inode', 'sessions', '/srv'] },
  good: {
    calls: [
      ['run_readonly', { argv: ['df', '-h'] }, '52% /srv'],
      ['run_readonly', { argv: ['df', '-i'] }, '100% /srv'],
      ['run_readonly', { argv: ['du', '--inodes', '/srv'] }, '/srv/wiki/sessions'],
      ['journal', { unit: 'wiki-clean.timer' }, 'Stopped'],
    ],
    says: `/srv has no inodes left (df -i: 100 %, though 48 GB are free). /srv/wiki/sessions has 6.4 million files
(du --inodes), because wiki-clean.timer was stopped 90 days ago. Remove old sessions and start the timer.`,
  },
  bad: {
    calls: [['run_readonly', { argv: ['df', '-h'] }]],
    says: 'The disk has enough space, so the error is a bug of the wiki. Restart it.',
  },
}
