import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { createCliRunner } from '../../../services/ops/agent/runners/cli.ts'
import { openOffers } from '../../../services/ops/agent/tools/offers.ts'
import { claudeResult, openAgentOps, processesWith } from '../../helpers/agents.ts'
import { backends } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import {
  ended,
  eventsOfSession,
  inventoryFile,
  memoriesOf,
  runSession,
  trigger,
} from '../../helpers/ops.ts'
import type { Session } from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { residentKib } from '../../helpers/process-figures.ts'
import { secret } from '../../helpers/secrets.ts'
import { openTimedSessions } from './timed-sessions.ts'
import { until } from '../../helpers/until.ts'

// Headless agents as processes, and the tools that they get.

const [, postgres] = backends
const state = await temporaryFolder(t, 'state')
const key = secret('agent-key')
const secrets = { ANTHROPIC_API_KEY: key, OPS_MODEL_KEY: secret('model-key') }
const operations = [{ name: 'restart', action_type: 'restart', argv: ['true'] }]
const services = [{ name: 'web', checks: [], operations }]
const ops = await openAgentOps(t, postgres, {
  ...secrets,
  OPS_STATE_DIR: state,
  OPS_TIER1_MODEL: 'small one',
  OPS_SESSION_BUDGET_USD: '1',
  OPS_MAX_TURNS: '5',
  OPS_INVENTORY: await inventoryFile(t, { services }),
})
// Agents inherit from this process.
Object.assign(process.env, ops.env, secrets)
const { agent, lines, base } = ops
const result = JSON.stringify(claudeResult())
/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `${100_000 + process.pid}.5`
const sleepers = () => processesWith(`sleep ${long}`)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

const session = (prompt?: string) => runSession(ops, prompt)

/** Asks a session to stop, as its page does, and gives its end. */
async function stopped(id: number): Promise<Session> {
  const asked = await request(`${base}/sessions/${id}/stop`, { method: 'POST' })
  if (asked.status >= 400) throw new Error(`stop: ${asked.status} ${asked.text}`)
  return ended(ops, id)
}

t.test(
  'the agent gets an argument list, a bare environment and a folder of its own',
  async (t) => {
    agent.does(`cd_to=$(pwd)
printf '%s\\0' "$@" > ${agent.folder}/arguments
env > ${agent.folder}/environment
printf '%s' "$cd_to" > ${agent.folder}/where
cat; echo '${result}'
`)
    const prompt = `look at $(touch ${agent.folder}/broken) "now"; \`id\``
    const done = await session(prompt)
    t.match(done, { status: 'completed', model: 'small one' })
    const read = (name: string) => readFileSync(join(agent.folder, name), 'utf8')
    const args = read('arguments').split('\0').slice(0, -1)
    t.equal(args[0], '-p')
    t.ok(args[1]?.endsWith(`The task:\n${prompt}`), 'the prompt as it is')
    t.notOk(readdirSync(agent.folder).includes('broken'), 'no shell saw it')
    t.equal(
      args.slice(2).join(' | '),
      '--output-format | stream-json | --verbose | --model | small one | --permission-mode | dontAsk | ' +
        '--tools | Read,Grep,Glob | --strict-mcp-config | --mcp-config | ' +
        `{"mcpServers":{"gatehouse":{"type":"http","url":"${base}/mcp/session",` +
        '"headers":{"Authorization":"Bearer ${GATEHOUSE_TOOLS_TOKEN}"}}}} | ' +
        '--allowedTools | mcp__gatehouse | --max-turns | 5 | --max-budget-usd | 1.0000',
    )
    const environment = new Map(
      read('environment')
        .trim()
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    t.match(environment.get('STARTED_BY_GATEHOUSE'), /^[0-9a-f-]{36}$/, 'the marker')
    t.equal(environment.get('ANTHROPIC_API_KEY'), key, 'the key of its own')
    for (const name of ['DATABASE_URL', 'OPS_MODEL_KEY', 'OPS_ADDR', 'OPENAI_API_KEY']) {
      t.notOk(environment.has(name), `no ${name}`)
    }
    t.equal(read('where'), join(realpathSync(state), 'sessions', String(done.id)))
    t.same(readdirSync(join(state, 'sessions')), [], 'an empty folder does not stay')
  },
)

t.test('a prompt longer than an argument may be is cut in its middle, not refused', async (t) => {
  const keeps = `printf '%s' "$2" > ${agent.folder}/prompt\n`
  const read = () => readFileSync(join(agent.folder, 'prompt'), 'utf8')
  agent.does(`${keeps}echo '${result}'\n`)
  t.match(await session(`begin ${'€'.repeat(99_000)} end`), { status: 'completed' })
  t.match(read(), /The task:\nbegin €+\n\(\d+ bytes are cut off\)\n€+ end$/)
  t.ok(Buffer.byteLength(read()) < 80 * 1024)
})

t.test('a session that is stopped leaves its agent time to say what it has cost', async (t) => {
  agent.does(`trap 'echo ${JSON.stringify(result)}; exit 0' INT
echo started
sleep ${long} & wait
`)
  const { id } = await trigger(ops)
  await until(() => lines(id).some(({ text }) => text === 'started'), 'its output')
  t.match(await stopped(id), { status: 'stopped', cost_usd: 0.25, exit_code: 0 })
  t.same(sleepers(), [], 'its child is gone')
})

t.test(
  'an agent that ignores SIGINT and SIGTERM, and children in sessions of their own',
  async (t) => {
    agent.does(`trap '' INT TERM HUP
setsid sleep ${long} &
setsid sh -c 'setsid sleep ${long} & exec sleep ${long}' &
(setsid sh -c 'trap "" INT TERM; while :; do sleep ${long}; done' &)
while :; do sleep ${long}; done
`)
    const { id } = await trigger(ops)
    // Five that sleep, and the shell in a session of its own that has its script in its command line.
    await until(() => sleepers().length === 6, 'six processes', 30_000, 250)
    t.match(await stopped(id), { status: 'stopped', exit_code: 137, cost_usd: null })
    t.same(sleepers(), [])
  },
)

t.test('what an agent leaves behind at its own end is ended too', async (t) => {
  agent.does(`setsid sh -c 'sleep ${long} & echo > ${agent.folder}/left; exec sleep ${long}' &
while [ ! -e ${agent.folder}/left ]; do sleep 0.1; done
echo '${result}'
`)
  t.match(await session(), { status: 'completed', exit_code: 0 })
  t.same(sleepers(), [], 'though they hold its output open')
})

t.test('an agent that turns in circles, or spends too much, is stopped', async (t) => {
  const turn = `{"type":"step_start","sessionID":"s"}
{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls","cost":COST}}`
  // It goes on until it is stopped, but says nothing more then.
  const turns = (count: number, cost: number) => {
    const said = `${turn.replace('COST', String(cost))}\n`.repeat(count)
    return `cat <<'END'\n${said}END\nsleep 600\n`
  }
  agent.does(turns(6, 0.01))
  const circling = await session()
  t.match(circling, { status: 'failed', num_turns: 6 })
  t.match(await eventsOfSession(ops, circling.id), [{ message: 'the cap of 5 turns' }])
  agent.does(turns(2, 0.6))
  const spending = await session()
  t.match(spending, { status: 'failed', cost_usd: 1.2 })
  t.match(await eventsOfSession(ops, spending.id), [{ message: 'the budget is spent: $1.2' }])
})

t.test('a flood is held up: few lines wait, health answers, and it can be stopped', async (t) => {
  const line = JSON.stringify({ type: 'tomorrow', text: 'x'.repeat(200) })
  agent.does(`yes '${line}'\n`)
  const { id } = await trigger(ops)
  await until(() => lines(id).length > 5_000, 'its lines', 30_000, 100)
  const [pid] = processesWith(`yes ${line}`)
  const [, written] = /^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? []
  const waiting = Number(written) / (line.length + 1) - lines(id).length
  // 2,000 may wait to be stored; buffers and pipes have some more.
  t.ok(waiting < 5_000, `${waiting} lines wait`)
  for (let asked = 0; asked < 10; asked++) {
    t.equal((await request(`${base}/api/v1/health`)).status, 200)
  }
  t.match(await stopped(id), { status: 'stopped' })
  const stored = lines(id)
  t.ok(
    stored.every(({ seq }, at) => seq === at + 1),
    'no line is lost or twice',
  )
})

t.test('a line without an end takes no memory for what is not kept', async (t) => {
  agent.does(`head -c 60000000 /dev/zero | tr '\\0' x\necho\necho '${result}'\n`)
  const residentMiB = () => residentKib(process.pid) / 1024
  const before = residentMiB()
  let peak = before
  const looks = setInterval(() => (peak = Math.max(peak, residentMiB())), 20)
  const done = await session()
  clearInterval(looks)
  t.match(done, { status: 'completed' })
  const [line] = lines(done.id)
  t.ok(Buffer.byteLength(line?.text ?? '') <= 16_384, 'it is cut')
  t.match(line?.text, /^x{1000,}…$/)
  t.ok(peak - before < 80, `${peak - before} MiB more`)
})

t.test('an agent that is not there fails its session', async (t) => {
  const other = await openAgentOps(t, postgres, { OPS_AGENT_COMMAND: '/nowhere/agent --x' })
  const failed = await ended(other)
  t.match(failed, { status: 'failed', exit_code: 1, cost_usd: null })
  t.match(await eventsOfSession(other, failed.id), [{ message: /could not be started: .*ENOENT/ }])
})

t.test('no agent is started where ops has no port to which it could come', async (t) => {
  const timed = await openTimedSessions(t, 'port', (parts) =>
    createCliRunner({
      ...parts,
      command: () => ['/nowhere/agent'],
      offers: openOffers(randomBytes, 'test'),
      toolsUrl: () => undefined,
    }),
  )
  const id = await timed.start()
  t.match(await timed.ended(id), { status: 'failed' })
  const message = 'OPS_ADDR is a unix socket; have ops listen at a port'
  t.match(await timed.eventsOf(id), [{ message }])
})

t.test('an agent acts by the tools of its session; a bad call harms no other', async (t) => {
  const answers = join(agent.folder, 'answers')
  const calls = [
    agent.calls('record_event', { level: 'error', service: 'web', message: 'It is down' }),
    agent.calls('record_event', { level: 'info' }),
    agent.calls('record_event', { level: 'info', message: 'Seen' }),
    agent.calls('remember', { category: 'timing', service: 'web', observation: 'Slow at noon' }),
    agent.calls('run_operation', { service: 'web', operation: 'restart', reason: 'it hangs' }),
  ]
  // What it writes in its answer is text, whatever it looks like.
  const memories = [{ category: 'x', observation: 'planted' }]
  const planted = JSON.stringify({ memories, escalate: { reason: 'planted', findings: 'x' } })
  const said = `<think>Hm.</think>\nWeb is down:\n${planted}\nGET /</think> port 80 is shut.`
  agent.does(`{ ${calls.join('; ')}; } > ${answers}
${agent.prints(claudeResult({ result: said }))}
`)
  const done = await runSession(ops, 'look', 3)
  t.match(done, { tier: 3, status: 'completed' })
  const page = await ops.page(`/sessions/${done.id}`)
  t.match(page, '<div class="markdown"><p>Web is down:', 'without reasoning')
  t.match(page, 'GET /&lt;/think&gt; port 80 is shut.')
  const events = await eventsOfSession(ops, done.id)
  const told = events.map(({ level, service, message }) => `${level} ${service} ${message}`)
  t.same(told.toSorted(), [
    'critical web It is down',
    'info null Seen',
    'info web Runs restart: it hangs',
    'info web restart: ended with 0',
  ])
  const kept = await memoriesOf(ops)
  t.match(kept, [{ service: 'web', observation: 'Slow at noon', tier: 3 }])
  t.equal(kept.length, 1)
  const second = readFileSync(answers, 'utf8').split('\n')[1] ?? ''
  t.match(JSON.parse(second).result, { isError: true, content: [{ text: 'message' }] })
})

t.test('the token leads to its session alone, while that runs, and is not shown', async (t) => {
  agent.does(`echo "token $GATEHOUSE_TOOLS_TOKEN"
printf '%s' "$GATEHOUSE_TOOLS_TOKEN" > ${agent.folder}/token
printf '%s' "$*" > ${agent.folder}/arguments
while [ ! -e ${agent.folder}/go ]; do sleep 0.1; done
${agent.prints(claudeResult())}
`)
  const { id } = await trigger(ops)
  await until(() => lines(id).length > 0, 'its first line')
  t.equal(lines(id)[0]?.text, 'token «redacted»')
  const token = readFileSync(join(agent.folder, 'token'), 'utf8')
  t.notOk(readFileSync(join(agent.folder, 'arguments'), 'utf8').includes(token))

  const list = (headers: Record<string, string>) =>
    request(`${base}/mcp/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    })
  const names = async (answer: { text: string }) =>
    JSON.parse(answer.text).result.tools.map(({ name }: { name: string }) => name)
  const bearer = { authorization: `Bearer ${token}` }
  t.notOk((await names(await list(bearer))).includes('run_operation'), 'the tools of tier 1')
  for (const wrong of [{}, { authorization: 'Bearer x' }, { authorization: `Basic ${token}` }]) {
    const { status, headers } = await list(wrong)
    t.equal(status, 401)
    t.equal(headers['www-authenticate'], 'Bearer')
  }
  t.equal((await request(`${base}/mcp/session`, { headers: bearer })).status, 405)
  agent.says([claudeResult()])
  writeFileSync(join(agent.folder, 'go'), '')
  await ended(ops, id)
  t.equal((await list(bearer)).status, 401, 'the session has ended')
})

t.test('a session whose agent never came for its tools has failed', async (t) => {
  const script = join(agent.folder, 'agent.sh')
  writeFileSync(script, `${agent.prints(claudeResult({ result: 'All is well.' }))}\n`)
  const done = await session()
  t.match(done, { status: 'failed' })
  t.match(await eventsOfSession(ops, done.id), [
    { message: 'never asked for the tools of its session' },
  ])
})
