import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addEndpoint, callTool, errorOf, modern } from '../helpers/mcp.ts'
import type { Json } from '../helpers/mcp.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { attemptsOf } from '../helpers/replay-setup.ts'
import { addProvider, post, postForm, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

const TOOL = 'replay_webhook_event'

t.test('replay as a tool', async (t) => {
  const [embedded] = backends
  const receiver = await startReceiver(t, ({ path }, response) => {
    response.writeHead(path === '/no' ? 410 : 201).end()
  })
  const stranger = await startReceiver(t)
  const { base } = await startHooks(t, embedded, {
    HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
  })
  await addProvider(base, 'open', { open: true })
  const id = (await post(base, 'generic/open', '{"n":1}')).json<Ack>().id
  const allowed = await addEndpoint(base, 'sender', { allow_replay: 'true' })
  const call = async (args: Record<string, unknown>): Promise<Json> => callTool(allowed, TOOL, args)

  await t.test('only an endpoint that was made for it has it', async (t) => {
    const reader = await addEndpoint(base, 'reader')
    t.notMatch((await modern(reader, 'tools/list')).text, TOOL)
    t.match((await modern(allowed, 'tools/list')).text, TOOL)
  })

  await t.test('it answers what the target answered', async (t) => {
    const target_url = `${receiver.url}/yes`
    const good = await call({ id, target_url })
    t.match(good['structuredContent'], { id, target_url, delivered: true, response_status: 201 })
    t.match(good['structuredContent'], { response_ms: Number })
    t.equal(receiver.received[0]?.body.toString(), '{"n":1}')
    const bad = await call({ id, target_url: `${receiver.url}/no` })
    t.match(bad['structuredContent'], { delivered: false, response_status: 410 })
    t.match(await attemptsOf(base, id), [{ answer: /^410 / }, { answer: /^201 / }])
  })

  await t.test('the default target needs no argument', async (t) => {
    t.match(errorOf(await call({ id })), { code: 'invalid_argument', message: /no default target/ })
    await postForm(base, '/settings', { replay_default_target: `${receiver.url}/default` })
    const answer = await call({ id })
    t.match(answer['structuredContent'], { target_url: `${receiver.url}/default`, delivered: true })
  })

  await t.test('a target that says nothing is given up', async (t) => {
    const silent = await startReceiver(t, () => undefined)
    await postForm(base, '/settings', { replay_default_target: silent.url })
    const answer = await call({ id })
    t.match(errorOf(answer), {
      code: 'replay_failed',
      message: 'Not delivered: no answer within 10 s.',
    })
    t.match((await attemptsOf(base, id))[0], { outcome: 'failed', answer: 'none' })
    t.equal(silent.connections(), 1)
  })

  await t.test('each refusal has its code', async (t) => {
    t.match(errorOf(await call({ id: 999_999 })), { code: 'not_found' })
    t.match(errorOf(await call({ id, target_url: 'ftp://a/' })), { code: 'invalid_argument' })
    const private_ = await call({ id, target_url: stranger.url })
    t.match(errorOf(private_), { code: 'replay_failed', message: /not on the public internet/ })
    t.equal(stranger.connections(), 0)
    t.match((await attemptsOf(base, id))[0], { outcome: 'refused', target: `${stranger.url}/` })
  })
})
