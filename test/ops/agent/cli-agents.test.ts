import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { createCliRunner } from '../../../services/ops/agent/runners/cli.ts'
import { openOffers } from '../../../services/ops/agent/tools/offers.ts'
import { claudeResult, openAgentOps, processesWith } from '../../helpers/agents.ts'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { legacy } from '../../helpers/mcp.ts'
import {
  ended,
  eventsOfSession,
  inventoryFile,
  memoriesOf,
  runSession,
  trigger,
} from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { residentKib } from '../../helpers/process-figures.ts'
import { secret } from '../../helpers/secrets.ts'
import { openTimedSessions } from './timed-sessions.ts'
import { until } from '../../helpers/until.ts'

// Headless agents as processes, and the tools that they get.

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

/** Asks a session to stop, as its page does, and gives its end. */
async function stopped(id: number) {
  await request(`${base}/sessions/${id}/stop`, { method: 'POST' })
  return ended(ops, id)
}

/** Runs a session that ends like this, with this event. */
async function endsWith(expected: object, message: string) {
  const session = await runSession(ops)
  t.match(session, expected)
  t.match(await eventsOfSession(ops, session.id), [{ message }])
}

/** What an agent has written to a file of its folder. */
const read = (name: string) => readFileSync(join(agent.folder, name), 'utf8')

t.test(
  'the agent gets an argument list, a bare environment and a folder of its own',
  async (t) => {
    agent.does(`printf '%s\\0' "$@" > ${agent.folder}/arguments
env > ${agent.folder}/environment
pwd > ${agent.folder}/where
cat; echo '${result}'
`)
    const prompt = `look at $(touch ${agent.folder}/broken) "now"; \`id\``
    const done = await runSession(ops, prompt)
    t.match(done, { status: 'completed', model: 'small one' })
    const [first, asked, ...args] = read('arguments').split('\0').slice(0, -1)
    t.equal(first, '-p')
    t.ok(asked?.endsWith(`The task:\n${prompt}`), 'the prompt as it is')
    t.notOk(readdirSync(agent.folder).includes('broken'), 'no shell saw it')
    t.equal(
      args.join(' | '),
      '--output-format | stream-json | --verbose | --model | small one | --permission-mode | dontAsk | ' +
        '--tools | Read,Grep,Glob | --strict-mcp-config | --mcp-config | ' +
        `{"mcpServers":{"gatehouse":{"type":"http","url":"${base}/mcp/session",` +
        '"headers":{"Authorization":"Bearer ${GATEHOUSE_TOOLS_TOKEN}"}}}} | ' +
        '--allowedTools | mcp__gatehouse | --max-turns | 5 | --max-budget-usd | 1.0000',
    )
    const environment = read('environment')
    t.match(environment, /^STARTED_BY_GATEHOUSE=[0-9a-f-]{36}$/m, 'the marker')
    t.match(environment, `ANTHROPIC_API_KEY=${key}\n`, 'the key of its own')
    t.notMatch(environment, /^(DATABASE_URL|OPS_MODEL_KEY|OPS_ADDR|OPENAI_API_KEY)=/m)
    t.equal(read('where').trim(), join(realpathSync(state), 'sessions', String(done.id)))
    t.same(readdirSync(join(state, 'sessions')), [], 'an empty folder does not stay')
  },
)

t.test('a prompt longer than an argument may be is cut in its middle, not refused', async (t) => {
  agent.does(`printf '%s' "$2" > ${agent.folder}/prompt\necho '${result}'\n`)
  const session = await runSession(ops, `begin ${'€'.repeat(99_000)} end`)
  t.match(session, { status: 'completed' })
  const prompt = read('prompt')
  t.match(prompt, /The task:\nbegin €+\n\(\d+ bytes are cut off\)\n€+ end$/)
  t.ok(Buffer.byteLength(prompt) < 80 * 1024)
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
  t.match(await runSession(ops), { status: 'completed', exit_code: 0 })
  t.same(sleepers(), [], 'though they hold its output open')
})

t.test('an agent that turns in circles, or spends too much, is stopped', async () => {
  const turn = `{"type":"step_start","sessionID":"s"}
{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls","cost":COST}}`
  // It goes on until it is stopped, but says nothing more then.
  const turns = (count: number, cost: number) => {
    const said = `${turn.replace('COST', String(cost))}\n`.repeat(count)
    return `cat <<'END'\n${said}END\nsleep 600\n`
  }
  agent.does(turns(6, 0.01))
  await endsWith({ status: 'failed', num_turns: 6 }, 'the cap of 5 turns')
  agent.does(turns(2, 0.6))
  await endsWith({ status: 'failed', cost_usd: 1.2 }, 'the budget is spent: $1.2')
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
  const isNext = ({ seq }: { seq: number }, at: number) => seq === at + 1
  t.ok(lines(id).every(isNext), 'no line is lost or twice')
})

t.test('a line without an end takes no memory for what is not kept', async (t) => {
  agent.does(`head -c 60000000 /dev/zero | tr '\\0' x\necho\necho '${result}'\n`)
  const residentMiB = () => residentKib(process.pid) / 1024
  const before = residentMiB()
  let peak = before
  const looks = setInterval(() => (peak = Math.max(peak, residentMiB())), 20)
  const done = await runSession(ops)
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
  agent.does(`{ ${calls.join('; ')}; } > ${agent.folder}/answers
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
  const [, second = ''] = read('answers').split('\n')
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
  const token = read('token')
  t.notOk(read('arguments').includes(token))

  const endpoint = { url: `${base}/mcp/session`, token }
  const list = (headers = {}) => legacy(endpoint, 'tools/list', {}, headers)
  const offered = (await list()).text
  t.match(offered, '"name":"run_check"')
  t.notMatch(offered, '"name":"run_operation"', 'the tools of tier 1')
  for (const Authorization of ['', 'Bearer x', `Basic ${token}`]) {
    const { status, headers } = await list({ Authorization })
    t.same([status, headers['www-authenticate']], [401, 'Bearer'])
  }
  const headers = { authorization: `Bearer ${token}` }
  t.equal((await request(endpoint.url, { headers })).status, 405)
  agent.says([claudeResult()])
  writeFileSync(join(agent.folder, 'go'), '')
  await ended(ops, id)
  t.equal((await list()).status, 401, 'the session has ended')
})

t.test('a session whose agent never came for its tools has failed', async () => {
  const script = join(agent.folder, 'agent.sh')
  writeFileSync(script, `${agent.prints(claudeResult({ result: 'All is well.' }))}\n`)
  await endsWith({ status: 'failed' }, 'never asked for the tools of its session')
})
