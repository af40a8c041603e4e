import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { t, type Test } from 'tap'
import { parse } from 'yaml'
import { openForward } from '../fixtures/forward-setup.ts'
import { postgres } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { addProvider, deliver, post, startHooks } from '../helpers/hooks.ts'
import { addEndpoint, callTool, modern, type Json } from '../helpers/mcp.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { inLongRun, ROOT } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

const FILE = join(ROOT, 'integrations/skills/gatehouse/SKILL.md')
const source = readFileSync(FILE, 'utf8')
const [, head = '', body = ''] = /^---\n(.*?)\n---\n(.*)$/s.exec(source) ?? []

/** What the fences of a language have, one after the other. */
function fenced(language: string) {
  const fences = body.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))
  return [...fences].map(([, text]) => text).join('')
}

const receiver = await startReceiver(t)
const { base, env } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
const token = await addProvider(base, 'ci')
// The event of its examples, which gets the id 1.
await post(base, 'generic/ci', '{"order":{"id":"A-17","paid":true}}', {
  Authorization: `Bearer ${token}`,
  'X-Event-Type': 'order.created',
})
await deliver(base, 'code_host', '{}')
const target = `${receiver.url}/hook`

// https://agentskills.io/specification
t.test('its head has the form of an agent skill, and it is short', async (t) => {
  const fields: Readonly<Record<string, unknown>> = parse(head)
  const { name, description, compatibility } = fields
  t.same(Object.keys(fields), ['name', 'description', 'license', 'compatibility'])
  t.equal(name, basename(dirname(FILE)), 'named as its folder')
  t.match(name, /^[a-z0-9]+(-[a-z0-9]+)*$/)
  t.ok(String(description).length <= 1_024)
  t.ok(String(compatibility).length <= 500)
  t.ok(body.split('\n').length < 500)
  // About 5,000 tokens.
  t.ok(body.length < 20_000)
})

t.test('it names each tool, and no other; its calls succeed', async (t) => {
  const endpoint = await addEndpoint(base, 'agent', { allow_replay: 'true' })
  const { result } = (await modern(endpoint, 'tools/list')).json<{ result: Json }>()
  const tools = (result['tools'] as unknown as readonly { name: string }[]).map(({ name }) => name)
  const named = body.matchAll(/\b(?:list|search|get|wait_for|replay)_(?:webhook|provider)\w*/g)
  t.same([...new Set([...named].map(([name]) => name))].sort(), tools.sort())

  const calls = [...fenced('text').matchAll(/^(\w+) (\{.*\})$/gm)]
  t.equal(calls.length, fenced('text').trim().split('\n').length)
  for (const [call, name = '', args = ''] of calls) {
    const answer = await callTool(endpoint, name, JSON.parse(args))
    t.notMatch(answer, { isError: true }, call)
    t.notMatch(JSON.stringify(answer['structuredContent']), /"events?":(\[\]|null)/, call)
  }
})

void inLongRun(t, 'its commands succeed, in their order', async (t: Test) => {
  const folder = await temporaryFolder(t)
  writeFileSync(join(folder, 'ci.token'), token)
  writeFileSync(join(folder, 'github.secret'), secret('github-secret'))
  const run = await openShell(folder)
  for (const command of fenced('sh').trim().split('\n')) {
    if (!command.startsWith('gatehouse forward ')) await run(t, command)
    else await runForwarder(t, command)
  }
  for (const [, command = ''] of body.matchAll(/`(gatehouse [^`]+)`/g)) {
    await run(t, command.replace('NAME', 'assistant'))
  }
  t.equal(readFileSync(join(folder, 'payload.bin'), 'utf8'), '{"order":{"id":"A-17","paid":true}}')
  t.match(JSON.parse(readFileSync(join(folder, 'event.json'), 'utf8')), { id: 1 })
  t.match(readFileSync(join(folder, 'shop.token'), 'utf8'), /^[\w-]{43}\n$/)
  const replayed = receiver.received.filter(({ headers }) => headers['x-gatehouse-replay'])
  t.equal(replayed.length, receiver.received.length - 1, 'one was forwarded')
})

/** A shell in a folder, in which `gatehouse` is this program beside the server of the test. */
async function openShell(folder: string) {
  const program = join(folder, 'gatehouse')
  writeFileSync(
    program,
    `#!/bin/sh
case "$1" in events) set -- "$@" --from '${base}' ;; esac
exec '${process.execPath}' '${join(ROOT, 'server.ts')}' "$@"
`,
  )
  chmodSync(program, 0o755)
  const variables = {
    ...env,
    HOOKS_ADDR: new URL(base).host,
    PATH: `${folder}:${process.env['PATH'] ?? ''}`,
  }
  return async (t: Test, command: string) => {
    const script = `cd '${folder}'\n${command.replaceAll('http://127.0.0.1:3000/hook', target)}`
    const shell = { program: ['sh', '-euc'], env: variables, secretShown: true }
    const { code, stderr } = await runCliProcess([script], shell)
    t.equal(code, 0, `${command}: ${stderr}`)
  }
}

/** The forwarder of the skill until it has delivered the event. */
async function runForwarder(t: Test, command: string) {
  const [, , , ...args] = command.split(' ')
  const forwarder = openForward(t, [target, ...args, '--from', base, '--since', '1'])
  await until(() => forwarder.lines().length > 0, 'the event to be forwarded')
  t.match(JSON.parse(forwarder.lines()[0] ?? ''), { id: 1, delivered: true })
  t.same(await forwarder.stop(), { code: 0, signal: null })
}
