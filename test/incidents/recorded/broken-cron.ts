import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A nightly job does not run any more, because its account has expired',
  asks: 'The sales report of the last two nights is missing.',
  services: [
    {
      name: 'report',
      checks: [
        {
          name: 'file of today',
          state: 'warn',
          since_min: 1_700,
          says: 'sales.csv was written 53 h ago, expected 25 h at most',
        },
      ],
      operations: ['run-report'],
    },
  ],
  journal: {
    'cron.service': `{-3d} web-1 CRON[700]: (report) CMD (/srv/report/sales.sh)
{-2d} web-1 CRON[911]: pam_unix(cron:account): account report has expired (account expired)
{-2d} web-1 CRON[911]: Authentication failure
{-1d} web-1 CRON[1040]: pam_unix(cron:account): account report has expired (account expired)
{-1d} web-1 CRON[1040]: Authentication failure`,
  },
  files: {
    '/etc/cron.d/report': '30 2 * * * report /srv/report/sales.sh\n',
    '/srv/report/sales.sh':
      '#!/bin/sh\npsql -Atc "select * from sales_of_yesterday" > /srv/report/sales.csv\n',
  },
  programs: {
    chage: [
      {
        prints: `Last password change : Jan 02, 2024
Account expires      : {-2d}`,
      },
    ],
  },
  expects: { names: ['expired', ['account', 'user'], 'cron'] },
  good: {
    calls: [
      ['read_file', { path: 'etc/cron.d/report' }, 'report /srv/report/sales.sh'],
      ['journal', { unit: 'cron.service' }, 'account report has expired'],
      ['run_readonly', { argv: ['chage', '-l', 'report'] }, 'Account expires'],
    ],
    says: `The job did not run: cron refuses the user report, because that account expired two days ago (journal of
cron: "account report has expired"; chage -l). Extend it with chage, then run the report once by hand.`,
  },
  bad: {
    calls: [['read_file', { path: 'srv/report/sales.sh' }]],
    says: 'The query of sales.sh gives no rows, so the report is empty. Look at the view sales_of_yesterday.',
  },
}
