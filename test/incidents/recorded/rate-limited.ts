import type { Incident } from '../incident.ts'

export const incident: Incident = {
  title: 'A provider limits us, because our own job asks without a pause',
  asks: 'Confirmation mails arrive hours late. Find out why.',
  services: [
    {
      name: 'mail-api',
      checks: [
        { name: 'send', state: 'fail', since_min: 190, says: 'answered 429, expected 202' },
      ],
    },
    {
      name: 'newsletter',
      checks: [{ name: 'unit', state: 'ok', since_min: 400 }],
      operations: ['stop-newsletter'],
    },
  ],
  journal: {
    'mailer.service': `{-3h} web-1 mailer[700]: POST mail-api.example/send 429 too many requests, retry-after 3600, limit 100/min
{-2h} web-1 mailer[700]: confirmation for order 881 waits: 429`,
    'newsletter.service': `{-4h} web-1 newsletter[950]: issue 31: 40,000 recipients
{-3h} web-1 newsletter[950]: send failed (429), trying again at once, attempt 1
{-3h} web-1 newsletter[950]: send failed (429), trying again at once, attempt 2
{-1m} web-1 newsletter[950]: send failed (429), trying again at once, attempt 1190441`,
  },
  files: {
    '/srv/mail/README':
      'One account for all: mailer and newsletter share the key, 100 requests a minute.\n',
  },
  expects: {
    names: ['429', 'newsletter', ['1,190,441', '1190441', 'at once', 'retry-after', 'retries']],
  },
  good: {
    calls: [
      ['journal', { unit: 'mailer.service' }, '429 too many requests'],
      ['journal', { unit: 'newsletter.service' }, 'attempt 1190441'],
      ['read_file', { path: 'srv/mail/README' }, 'share the key'],
    ],
    says: `mail-api answers 429 for 3 hours, because the newsletter uses up the limit of 100 a minute that it shares
with the mailer: it tries again at once, 1,190,441 times (journal). Stop the newsletter and give it a pause.`,
  },
  bad: {
    calls: [['journal', { unit: 'mailer.service' }]],
    says: 'The provider has lowered our limit and answers 429. Ask them for a higher plan.',
  },
}
