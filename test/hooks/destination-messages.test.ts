import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { refuseCommands } from '../helpers/cli.ts'
import { addDestination, destination, listed, untilListed } from '../helpers/destinations.ts'
import { addProvider, deliver, FORM_TYPE, post, postForm, startHooks } from '../helpers/hooks.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startReceiver, type Received } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey, signingSecret } from '../helpers/senders.ts'

const PUSH = {
  ref: 'refs/heads/main',
  repository: { full_name: 'acme/widgets' },
  pusher: { name: 'ann' },
  head_commit: { message: 'Mend the <!channel> "door" & more\n\nLonger text.' },
}

await onPostgres(t, 'messages made of events', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, {
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    GATEHOUSE_SECRET_KEY: secretKey(),
  })
  const api = apiOf(base)
  await addProvider(base, 'lan', { open: true })
  const receiver = await startReceiver(t)
  let made = 0

  /** What a destination with this template posts for an event that is sent now. */
  async function posted(
    template: string,
    send: () => Promise<unknown>,
    more: object = {},
    path = '/in',
  ): Promise<Received> {
    const name = `d${made++}`
    const url = receiver.url + path
    const answer = await api('POST', '/destinations', {
      ...{ name, url, body_template: template },
      ...more,
    })
    t.match(answer, { status: 201, json: { body_template: template } })
    await send()
    await untilListed(env, name, { delivered: 1 })
    await destination(env, 'remove', name)
    const request = receiver.received.at(-1)
    if (request === undefined) throw new Error('nothing was posted')
    t.equal(request.headers['content-type'], 'application/json')
    return request
  }
  // Each with a body of its own: the same one would be the same event.
  const push = () => {
    const body = JSON.stringify({ ...PUSH, n: made })
    return deliver(base, 'code_host', body, { 'X-GitHub-Event': 'push' })
  }
  const jsonOf = ({ body }: Received): unknown => JSON.parse(body.toString())

  await t.test('placeholders are values of the event, written as JSON', async (t) => {
    const odd = 'a"b\\c\n</script>\u2028ü'
    const body = {
      ...{ odd, number: 1.5, yes: true, none: null, list: [{ a: 'x' }], object: {} },
      ...{ long: 'ä'.repeat(700), '-dash_1': 'd' },
    }
    const template = `{
      "text": "{{event_type}} {{ provider }}: {{json.odd}}", "{{json.-dash_1}}": 1,
      "number": {{json.number}}, "yes": {{json.yes}}, "none": {{json.none}}, "odd": {{json.odd}},
      "item": "{{json.list.0.a}}", "object": {{json.object}}, "missing": "<{{json.a.b}}>",
      "proto": "<{{json.__proto__.x}}{{json.constructor}}{{json.list.length}}>",
      "long": "{{json.long}}", "quote": "\\"{{json.odd}}\\"", "at": "{{received_at}}", "id": {{id}}
    }`
    const send = async () =>
      post(base, 'generic/lan', JSON.stringify(body), { 'X-Event-Type': 'odd.one' })
    const filled = jsonOf(await posted(template, send)) as Record<string, unknown>
    t.match(filled, {
      text: `odd.one generic:lan: ${odd}`,
      ...{ d: 1, number: 1.5, yes: true, none: null, odd, item: 'x', object: null },
      ...{ missing: '<>', proto: '<>', long: `${'ä'.repeat(499)}…`, quote: `"${odd}"` },
      at: /^\d{4}-\d\d-\d\dT/,
    })
    t.type(filled['id'], 'number')
  })

  await t.test('what is no JSON has no members, and what has no type is an event', async (t) => {
    const template = '{"text": "{{title}}: {{summary}} <{{event_type}}{{json.a}}>"}'
    const { text } = jsonOf(
      await posted(template, async () => post(base, 'generic/lan', 'plain "text"')),
    ) as { text: string }
    t.equal(text, 'event from generic:lan: plain "text" <>')
  })

  await t.test('a push becomes a message of each service', async (t) => {
    const title = 'push from code_host'
    const summary = 'acme/widgets · main · ann · Mend the <!channel> "door" & more'
    const escaped = summary.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')
    t.same(jsonOf(await posted('slack', push)), { text: `${title}: ${escaped}` })
    t.same(jsonOf(await posted('discord', push)), {
      content: `${title}: ${summary}`,
      allowed_mentions: { parse: [] },
    })
    const card = jsonOf(await posted('teams', push))
    const run = (text: string) => ({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text }] })
    const content = { type: 'AdaptiveCard', body: [run(title), run(summary)] }
    t.match(card, {
      type: 'message',
      attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', content }],
    })
    const link = () =>
      post(base, 'generic/lan', '{"title": "[bank.example](https://evil.example)"}', {
        'X-Event-Type': '[a](b)'.repeat(100),
      })
    const { content: shown } = jsonOf(await posted('discord', link)) as { content: string }
    t.notMatch(shown, '](', 'no address hides behind another')
    t.ok(shown.length <= 2_000, 'nor is it longer than Discord takes')
    // ntfy reads JSON at its root alone, with the topic in it.
    const notice = await posted('ntfy', push, {}, '/alerts?auth=geheimnis')
    t.same(jsonOf(notice), { topic: 'alerts', title, message: summary })
    t.equal(notice.path, '/?auth=geheimnis')
  })

  await t.test(
    'only the destination itself signs it, and no header of the event is sent',
    async (t) => {
      const plain = await posted('slack', push)
      t.equal(plain.headers['x-github-event'], undefined)
      t.equal(plain.headers['x-hub-signature-256'], undefined)
      const own = signingSecret()
      const { headers, body } = await posted('slack', push, { sign_with: { secret: own } })
      t.ok(new Webhook(own).verify(body.toString(), headers as Record<string, string>))
    },
  )

  await t.test('the tokens in the addresses of chat services are not shown', async (t) => {
    const token = secret('chat').replaceAll('-', '')
    const rows = [
      ['https://hooks.slack.com/services/T0AB/B0CD/', 'slack'],
      ['https://discord.com/api/webhooks/123456789/', 'discord'],
    ] as const
    for (const [url, body_template] of rows) {
      const made = await api('POST', '/destinations', {
        ...{ name: body_template, url: url + token, body_template, event_type: 'none' },
      })
      t.match(made, { status: 201, json: { url: `${url}«redacted»` } })
      const [row] = await backend.query(env, 'select url from hooks.destinations')
      t.same(row, { url: url + token })
      const changed = { url: `${url}«redacted»`, body_template, timeout_s: 5 }
      t.equal((await api('PUT', `/destinations/${body_template}`, changed)).status, 200)
      t.same((await backend.query(env, 'select url from hooks.destinations'))[0], row, 'it stays')
      await destination(env, 'remove', body_template)
    }
  })

  await t.test('page and command, and what is refused', async (t) => {
    const url = 'http://127.0.0.1:9/in'
    await addDestination(env, 'chat', url, '--body-template', 'slack')
    t.match(await listed(env, 'chat'), { body_template: 'slack' })
    await destination(env, 'set', 'chat', '--timeout', '5')
    t.match(await listed(env, 'chat'), { body_template: 'slack', timeout_s: 5 })
    const saved = await postForm(base, '/destinations/chat', { url, body_template: '{"a": 1}' })
    t.match(saved, { status: 200, headers: { 'gatehouse-done': 'Saved.' } })
    t.match(await listed(env, 'chat'), { body_template: '{"a": 1}' })

    const put = (body_template: unknown) => ({
      call: 'PUT /api/v1/destinations/chat',
      body: { url, body_template },
    })
    const rows: readonly Refusal[] = [
      [put('{"a": "{{unknown}}"}'), 422, undefined, /^body_template has \{\{unknown\}\}, which/],
      [put('{"a": "{{json}}"}'), 422],
      [put('{"a": "{{json.a..b}}"}'), 422],
      [put('{"a": "{{topic}}"}'), 422],
      [put('{"a": "{{id}"}'), 422, undefined, /^body_template has \{\{ without \}\}/],
      [put('{"a": "{{a{b}}"}'), 422],
      [put('{"a": {{id}}'), 422, undefined, /^body_template must be JSON, or one of slack/],
      [put('{ {{json.a}}: 1 }'), 422],
      [put('{{json.a}}{{json.b}}"'), 422],
      [put('Slack'), 422],
      [put(`"${'x'.repeat(10_000)}"`), 422, undefined, /10000 characters at most/],
      [put(`"${'{{id}}'.repeat(101)}"`), 422, undefined, /100 placeholders at most/],
      [put({ text: 'x' }), 400, undefined, /^body_template must be a text/],
    ]

    await refuseAll(t, { service: 'hooks', base, state: () => listed(env, 'chat') }, rows)
    const form = new URLSearchParams({ url, body_template: '{' }).toString()
    await refuseAll(t, { service: 'hooks', base, state: () => listed(env, 'chat') }, [
      [{ call: 'POST /destinations/chat', headers: FORM_TYPE, body: form }, 422],
      [
        {
          call: 'PUT /api/v1/destinations/chat',
          body: { url: 'http://127.0.0.1:9/', body_template: 'ntfy' },
        },
        ...([422, undefined, /^url must end with the topic/] as const),
      ],
    ])
    await refuseCommands(t, { env, state: () => listed(env, 'chat') }, [
      [['destination', 'set', 'chat', '--body-template', '{'], 1, /body_template must be JSON/],
    ])
    t.match(await api('PUT', '/destinations/chat', { url }), { json: { body_template: null } })
  })
})
