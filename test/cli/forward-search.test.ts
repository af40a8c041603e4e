import { t } from 'tap'
import type { Test } from 'tap'
import { startForward } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

t.test('forwarding of what the payload says', async (t: Test) => {
  const { base, env } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  const target = await startReceiver(t)
  const forward = (...args: readonly string[]) =>
    startForward(t, [target.url, '--from', base, ...args])
  const send = async (body: string): Promise<number> =>
    (await post(base, 'generic/lan', body)).json<Ack>().id
  const first = await send('{"data":{"object":{"id":"evt_1"}}}')
  const since = ['--since', String(first)]
  const ids = (lines: readonly string[]): readonly number[] =>
    lines.map((line) => (JSON.parse(line) as { id: number }).id)

  await t.test('--text and --json-member choose, also what comes later', async (t) => {
    const byText = forward('--text', 'evt_1', '--json', ...since)
    const byMember = forward('--json-member', 'data.object.id=evt_1', '--json', ...since)
    await Promise.all([byText.connected(), byMember.connected()])
    await send('{"data":{"object":{"id":"evt_2"}}}')
    const longer = await send('{"data":{"object":{"id":"evt_12"}}}')
    const last = await send('{"data":{"object":{"id":"evt_1"}},"n":2}')
    await until(() => byText.lines().length === 3, 'the events with the text')
    await until(() => byMember.lines().length === 2, 'the events with the member')
    t.same(ids(byText.lines()), [first, longer, last])
    t.same(ids(byMember.lines()), [first, last])
    t.match(byText.said(), /^connected as ".+ 127\.0\.0\.1:\d+\/ text=evt_1", after/)
    t.match(byMember.said(), /^connected as ".+ json=data\.object\.id=evt_1", after/)
  })

  await t.test('searches that differ anywhere are forwarders of their own', async (t) => {
    const long = 'x'.repeat(400)
    const searches = [`${long}1`, `${long}2`, 'a\nb', 'a\tb', 'ab']
    const forwarders = searches.map((text) => forward('--text', text))
    for (const forwarder of forwarders) await forwarder.connected()
    const rows = await postgres.query(env, 'select name, connection from hooks.forwarders')
    const searching = rows.filter(({ name }) => / text=(x|ab)/.test(String(name)))
    t.equal(searching.length, searches.length)
    t.ok(searching.every(({ connection }) => Number(connection) === 1))
    await forwarders[0]?.stop()
    await forward('--text', searches[0] ?? '').connected()
    const [again] = await postgres.query(
      env,
      'select count(*)::int as count from hooks.forwarders where connection = 2',
    )
    t.match(again, { count: 1 }, 'and the same one has the same name again')
  })
})
