import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { t } from 'tap'
import type { Notice } from '../../db/notices.ts'
import { readAddress } from '../../services/notices/address.ts'
import { sendMessage } from '../../services/notices/send.ts'
import type { Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'

const NEVER = new AbortController().signal
const SITE = 'https://ops.example'
const LINK = `${SITE}/sessions/3`
const LINKS = `${LINK}\nAcknowledge: ${SITE}/notices/7`
const begin: Notice = {
  id: 7,
  session_id: 3,
  kind: 'event',
  level: 'critical',
  service: 'shop',
  message: 'front <!channel> & [a](https://b.example/) @everyone',
  created_at: new Date('2026-05-04T08:30:00Z'),
  lasts: true,
  begin_id: null,
  site: 'ops',
  path: '/sessions/3',
}
const end: Notice = { ...begin, id: 9, level: 'info', message: 'good', lasts: false, begin_id: 7 }

function messageOf(notice: Notice, number = 0) {
  const acknowledge = notice.lasts ? `${SITE}/notices/${notice.id}` : null
  const { id, begin_id } = notice
  const about = { notice, number, link: LINK, acknowledge, site: SITE, key: `notice-${id}` }
  return Object.assign(about, { all: [], incident: begin_id ?? id })
}

const title = 'Gatehouse: shop (critical)'
const json = { 'content-type': 'application/json', 'idempotency-key': 'notice-7' }
const token = secret('notify')

/** What each kind sends for a beginning, and for an end where that differs in more than its text. */
const KINDS: readonly (readonly [kind: string, address: string, object, object?])[] = [
  [
    'json',
    '/a?b=1',
    { id: 7, message: begin.message, url: LINK, acknowledge_url: `${SITE}/notices/7` },
  ],
  [
    'slack',
    '/services/T/B/x',
    {
      text: `${title}\nfront &lt;!channel&gt; &amp; [a](https://b.example/) @everyone\n${LINKS}`,
    },
  ],
  [
    'discord',
    '/api/webhooks/1/x',
    {
      content: `${title}\nfront <!channel> & [a]\\(https://b.example/) @everyone\n${LINKS}`,
      allowed_mentions: { parse: [] },
    },
  ],
  [
    'telegram',
    '/bot1:x/sendMessage?chat_id=-5',
    {
      chat_id: '-5',
      text: `${title}\n${begin.message}\n${LINKS}`,
      link_preview_options: { is_disabled: true },
    },
  ],
  [
    'pagerduty',
    '/v2/enqueue?routing_key=r',
    {
      routing_key: 'r',
      event_action: 'trigger',
      dedup_key: `${SITE} notice 7`,
      payload: { summary: begin.message, source: 'shop', severity: 'critical' },
      links: [{ href: LINK }],
    },
    { routing_key: 'r', event_action: 'resolve', dedup_key: `${SITE} notice 7` },
  ],
  [
    'apprise',
    '/notify/home',
    { title, body: `${begin.message}\n${LINKS}`, type: 'failure', format: 'text', tag: 'all' },
    { title: 'Gatehouse: shop (over)', body: `good\n${LINK}`, type: 'success', tag: 'all' },
  ],
  ['apprise', '/notify/?urls=json%3A%2F%2Fx', { title, type: 'failure', urls: 'json://x' }],
]

const { url, received } = await startReceiver(
  t,
  (_, response) => void response.writeHead(200).end(),
)

/** Sends a notice to an address; gives why it was not taken. */
function send(address: string, notice = begin, key?: string) {
  return sendMessage(readAddress(address, key), messageOf(notice), NEVER)
}

/** The same where it is taken, and gives the request. The body is JSON. */
async function told(address: string, notice = begin, key?: string) {
  const refusal = await send(address, notice, key)
  if (refusal !== undefined) throw new Error(refusal.problem)
  const { method, path, headers, body } = received.at(-1) ?? {}
  return { method, path, headers, json: JSON.parse(String(body)) }
}

await t.test('each kind sends what its service takes', async (t) => {
  for (const [kind, address, body, endBody] of KINDS) {
    // The others take the query as members of the body.
    const path = kind === 'json' ? address : address.replace(/\?.*/, '')
    const target = `${kind === 'json' ? '' : `${kind}+`}${url}${address}`
    t.match(await told(target), { method: 'POST', path, headers: json, json: body }, kind)
    if (endBody !== undefined) t.match(await told(target, end), { json: endBody }, `${kind}: end`)
  }
})

await t.test(
  'what is asked of a service is passed on; ntfy shows any letters, and an end',
  async (t) => {
    const parameters = 'message_thread_id=7&disable_notification=true&protect_content=false'
    const telegram = await told(`telegram+${url}/bot1/sendMessage?chat_id=5&${parameters}`)
    t.match(telegram.json, {
      message_thread_id: 7,
      disable_notification: true,
      protect_content: false,
    })
    const pagerduty = await told(`pagerduty+${url}/v2/enqueue?routing_key=k&component=db&group=eu`)
    t.match(pagerduty.json.payload, { component: 'db', group: 'eu' })
    const topic = `ntfy+${url}/my%20topic`
    t.match((await told(topic, { ...begin, service: 'Büro' })).json, {
      topic: 'my topic',
      message: begin.message,
      priority: 5,
      title: 'Gatehouse: Büro (critical)',
      tags: ['critical'],
      click: LINK,
    })
    t.match((await told(topic, end)).json, {
      title: '(over)',
      tags: ['white_check_mark'],
      actions: [],
    })
  },
)

await t.test('a receiver that limits its callers is asked again when it says', async (t) => {
  const at = new Date(Date.now() + 7_200_000).toUTCString()
  for (const [text, least, most] of [
    ['30', 30_000, 30_000],
    ['99999', 3_600_000, 3_600_000],
    [at, 3_600_000, 3_600_000],
    ['soon', 0, 0],
  ] as const) {
    const { url } = await startReceiver(
      t,
      (_, response) => void response.writeHead(429, { 'retry-after': text }).end(),
    )
    const refusal = await send(url)
    t.equal(refusal?.problem, 'the receiver answered 429')
    t.ok(Number(refusal?.waitMs) >= least && Number(refusal?.waitMs) <= most, text)
  }
})

await t.test('a token beside the address goes where the service wants it', async (t) => {
  const headers = { authorization: `Bearer ${token}` }
  for (const [address, wanted] of [
    [`${url}/json`, { headers }],
    [`ntfy+${url}/topic`, { headers, path: '/' }],
    [`apprise+${url}/notify/home`, { headers }],
    [`telegram+${url}/sendMessage?chat_id=5`, { path: `/bot${token}/sendMessage` }],
    [`pagerduty+${url}/v2/enqueue`, { json: { routing_key: token } }],
  ] as const) {
    t.match(await told(address, begin, token), wanted, address)
  }
})

await t.test('a long text is cut to what each service takes', async (t) => {
  const long = { ...begin, service: 's'.repeat(300), message: `${'](😀'.repeat(10_000)}` }
  const bodyOf = async (address: string) =>
    (await told(address.replace('/', `${url}/`), long)).json
  for (const [address, member, most] of [
    ['discord+/x', 'content', 2_000],
    ['telegram+/bot1/sendMessage?chat_id=1', 'text', 4_096],
    ['ntfy+/topic', 'message', 4_096],
    // Its API refuses a longer title or body.
    ['apprise+/notify/key', 'title', 250],
    ['apprise+/notify/key', 'body', 32_768],
  ] as const) {
    const text = String((await bodyOf(address))[member])
    // ntfy counts bytes.
    const size = member === 'message' ? Buffer.byteLength(text) : text.length
    t.ok(size <= most && text.isWellFormed(), address)
    if (member === 'text') t.ok(text.endsWith(LINKS), 'the link stays whole')
  }
  const { payload } = await bodyOf('pagerduty+/v2?routing_key=r')
  t.ok(payload.summary.length <= 1_024)
})

await t.test('what is not taken has a reason without the address', async (t) => {
  let status = 403
  const { url } = await startReceiver(t, (_request, response) => {
    response.writeHead(status).end()
  })
  const refused = { problem: 'the receiver answered 403' }
  t.match(await send(`slack+${url}/${token}`), refused)
  status = 204
  const unconfigured = { problem: 'the receiver answered 204' }
  t.match(await send(`apprise+${url}/notify/${token}`), unconfigured)
  t.match(await send('http://127.0.0.1:2/x'), { problem: 'ECONNREFUSED' })
})

/** A mail as the server got it. */
type Got = { from: string; to: readonly string[]; text: string; secure: boolean; user: unknown }

async function startMailServer(t: Owner, options: SMTPServerOptions = {}) {
  const mails: Got[] = []
  const server = new SMTPServer({
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) => {
      if (password === token) done(null, { user: username })
      else done(new Error('wrong password'))
    },
    onData(stream, { envelope, secure, user }, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = envelope
        const from = mailFrom === false ? '' : mailFrom.address
        const text = Buffer.concat(chunks).toString()
        mails.push({ from, to: rcptTo.map(({ address }) => address), text, secure, user })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as AddressInfo
  return { mails, port }
}

const MAILBOXES = 'from=gatehouse@example.com&to=a@example.com,b@example.com'

await t.test('mail: a real server takes it, with a password', async (t) => {
  const { mails, port } = await startMailServer(t)
  const notice = { ...begin, message: 'Tür offen\r\nBcc: x@example.com' }
  const mail = (password: string, more = '&tls=no') =>
    send(`smtp://me:${password}@127.0.0.1:${port}?${MAILBOXES}${more}`, notice)
  t.equal(await mail(token), undefined)
  t.match(mails, [
    { from: 'gatehouse@example.com', to: ['a@example.com', 'b@example.com'], user: 'me' },
  ])
  const [head = ''] = mails[0]?.text.split('\r\n\r\n') ?? []
  const id = `<notice-7.${begin.created_at.getTime()}.gatehouse@example.com>`
  t.match(head, `\nMessage-ID: ${id}\r`, 'notice 7 of another installation has another id')
  t.notMatch(head, '\nBcc', 'a line of the text is no header')
  t.match(head, '\nSubject: =?UTF-8?Q?Gatehouse=3A_shop')
  t.match(await mail('wrong'), { problem: 'the mail server answered 535' })
  const untrusted = await mail(token, '')
  t.match(untrusted?.problem, /SELF_SIGNED|ESOCKET|ETLS|CERT/, 'its certificate is not trusted')
  t.equal(mails.length, 1)
})

await t.test('mail: without TLS nothing is sent, unless the address says so', async (t) => {
  const options = { disabledCommands: ['STARTTLS', 'AUTH'], authOptional: true }
  const { mails, port } = await startMailServer(t, options)
  const address = `smtp://127.0.0.1:${port}?${MAILBOXES}`
  t.match(await send(address), { problem: /ETLS|mail server answered/ })
  t.equal(mails.length, 0)
  t.equal(await send(`${address}&tls=no`), undefined)
  t.match(mails, [{ secure: false }])
  t.match(await send(`smtp://127.0.0.1:1?${MAILBOXES}`), { problem: /^ECONN|^ESOCKET/ })
})

await t.test('an address that no kind has is refused, and not quoted', async (t) => {
  for (const address of [
    'nonsense',
    `pigeon+https://x/${token}`,
    'ftp://x/',
    'telegram+https://x/sendMessage?chat_id=1',
    'telegram+https://x/bot1/sendMessage?chat_id=1&parse_mode=HTML',
    'telegram+https://x/bot1/sendMessage?chat_id=1&message_thread_id=007',
    'pagerduty+https://x/v2/enqueue?routing_key=k&severity=info',
    'apprise+https://x/notify/key?tags=a',
    'smtp://host?from=a@b&to=c@d&cc=e@f',
    'pagerduty+https://x/v2/enqueue',
    'smtp://host?from=a@b',
    'smtp://u:%zz@host?from=a@b&to=c@d',
    'smtp://host?from=a@b&to=c@d&tls=maybe',
  ]) {
    t.throws(() => readAddress(address), SyntaxError, address)
    try {
      readAddress(address)
    } catch (error) {
      t.notMatch(String(error), token)
    }
  }
})
