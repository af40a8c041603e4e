import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { runProcess } from '../../kernel/processes/run.ts'
import { claudeResult, openAgentOps, processesWith } from '../helpers/agents.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { ended, trigger } from '../helpers/ops.ts'
import type { Event, OpsServer, Session } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { residentKib } from '../helpers/process-figures.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const state = await temporaryFolder(t, 'state')
const key = secret('agent-key')
const secrets = { ANTHROPIC_API_KEY: key, OPS_MODEL_KEY: secret('model-key') }
const ops = await openAgentOps(t, postgres, {
  ...{ ...secrets, OPS_STATE_DIR: state, OPS_TIER1_MODEL: 'small one' },
  ...{ OPS_SESSION_BUDGET_USD: '1', OPS_MAX_TURNS: '5' },
})
// Agents inherit from this process.
Object.assign(process.env, ops.env, secrets)
const { agent, lines, api } = ops
const result = JSON.stringify(claudeResult())
/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `${100_000 + process.pid}.5`
const sleepers = (): readonly number[] => processesWith(`sleep ${long}`)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

async function session(prompt?: string): Promise<Session> {
  const { id } = await trigger(ops, prompt)
  return ended(ops, id)
}

/** Asks a session to stop, as its page does, and gives its end. */
async function stopped(on: OpsServer, id: number): Promise<Session> {
  const asked = await request(`${on.base}/sessions/${id}/stop`, { method: 'POST' })
  if (asked.status >= 400) throw new Error(`stop: ${asked.status} ${asked.text}`)
  return ended(on, id)
}

async function reasonOf({ id }: Session): Promise<string> {
  const { json } = await api<{ events: readonly Event[] }>('GET', '/events')
  return json.events.find(({ session_id }) => session_id === id)?.message ?? ''
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
    const read = (name: string): string => readFileSync(join(agent.folder, name), 'utf8')
    const args = read('arguments').split('\0').slice(0, -1)
    t.equal(args[0], '-p')
    t.ok(args[1]?.endsWith(`The task:\n${prompt}`), 'the prompt as it is')
    t.notOk(readdirSync(agent.folder).includes('broken'), 'no shell saw it')
    t.same(args.slice(2), [
      ...['--output-format', 'stream-json', '--verbose', '--model', 'small one'],
      ...['--permission-mode', 'dontAsk', '--tools', 'Read,Grep,Glob'],
      ...['--strict-mcp-config', '--mcp-config'],
      '{"mcpServers":{"gatehouse":{"type":"http","url":"' +
        `${ops.base}/mcp/session","headers":{"Authorization":"Bearer \${GATEHOUSE_TOOLS_TOKEN}"}}}}`,
      ...['--allowedTools', 'mcp__gatehouse'],
      ...['--max-turns', '5', '--max-budget-usd', '1.0000'],
    ])
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
  const read = (): string => readFileSync(join(agent.folder, 'prompt'), 'utf8')
  agent.does(`${keeps}echo '${result}'\n`)
  t.match(await session(`begin ${'€'.repeat(99_000)} end`), { status: 'completed' })
  t.match(read(), /The task:\nbegin €+\n\(\d+ bytes are cut off\)\n€+ end$/)
  t.ok(Buffer.byteLength(read()) < 80 * 1024)

  // The longest that a tier may find, twice.
  const found = (tier: number): string => `found ${tier} ${'漢'.repeat(19_980)}`
  const asks = (tier: number): string => {
    const escalate = { reason: `reason ${tier}`, findings: found(tier) }
    const line = agent.prints(claudeResult({ result: 'Deep.' }))
    return `*"tier ${tier} of 3"*) ${agent.calls('escalate', escalate)}; ${line};;`
  }
  agent.does(`case "$2" in ${asks(1)} ${asks(2)} *) ${keeps}echo '${result}';; esac\n`)
  t.match(await session(`begin ${'€'.repeat(99_000)}`), { status: 'escalated' })
  t.match(await ended(ops), { tier: 3, status: 'completed' })
  const ends = [1, 2].map((tier) => {
    const fence = `\\${tier}`
    return `[^]*(FINDINGS-\\S+) [^]*\n${fence}\nreason ${tier}\n\nfound ${tier} 漢+…\n${fence}`
  })
  t.match(read(), new RegExp(`\nbegin €+\n\\(\\d+ bytes are cut off\\)\n€+${ends.join('')}$`))
})

t.test('a session that is stopped leaves its agent time to say what it has cost', async (t) => {
  agent.does(`trap 'echo ${JSON.stringify(result)}; exit 0' INT
echo started
sleep ${long} & wait
`)
  const { id } = await trigger(ops)
  await until(() => lines(id).some(({ text }) => text === 'started'), 'its output')
  t.match(await stopped(ops, id), { status: 'stopped', cost_usd: 0.25, exit_code: 0 })
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
    await until(() => sleepers().length === 6, 'six processes')
    t.match(await stopped(ops, id), { status: 'stopped', exit_code: 137, cost_usd: null })
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
  const turns = (count: number, cost: number): string => {
    const said = `${turn.replace('COST', String(cost))}\n`.repeat(count)
    return `cat <<'END'\n${said}END\nsleep 600\n`
  }
  agent.does(turns(6, 0.01))
  const circling = await session()
  t.match(circling, { status: 'failed', num_turns: 6 })
  t.match(await reasonOf(circling), /the cap of 5 turns/)
  agent.does(turns(2, 0.1))
  const { id } = await trigger(ops)
  const isKept = async () => (await api<Session>('GET', `/sessions/${id}`)).json.cost_usd === 0.2
  await until(isKept, 'its cost while it works')
  t.match(await stopped(ops, id), { status: 'stopped', cost_usd: 0.2 })
  agent.does(turns(2, 0.6))
  const spending = await session()
  t.match(spending, { status: 'failed', cost_usd: 1.2 })
  t.match(await reasonOf(spending), /the budget is spent: \$1\.2/)
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
    t.equal((await request(`${ops.base}/api/v1/health`)).status, 200)
  }
  t.match(await stopped(ops, id), { status: 'stopped' })
  const seqs = lines(id).map(({ seq }) => seq)
  t.same(
    seqs,
    seqs.map((_, at) => at + 1),
    'no line is lost or twice',
  )
})

t.test('a line without an end takes no memory for what is not kept', async (t) => {
  agent.does(`head -c 60000000 /dev/zero | tr '\\0' x\necho\necho '${result}'\n`)
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
  const { json } = await other.api<{ events: readonly Event[] }>('GET', '/events')
  t.match(json.events, [{ message: /could not be started: .*ENOENT/ }])
})

t.test('no agent is started for a session that has ended meanwhile', async (t) => {
  const options = { marker: randomUUID(), signal: AbortSignal.abort() }
  const end = await runProcess(['sleep', '60'], { ...options, stopSignals: [], onOutput() {} })
  t.match(end, { exitCode: null, endedBy: null, problem: 'was stopped before it began' })
})

t.test('a line that our own code fails on ends the agent, and is said', async (t) => {
  const argv = ['sh', '-c', `echo one; sleep ${long} & setsid sleep ${long} & sleep ${long}`]
  const run = runProcess(argv, {
    ...{ marker: randomUUID(), ownsMarker: true, stopSignals: ['SIGTERM', 'SIGKILL'] },
    onOutput: (bytes) => {
      throw new Error(`broke on ${bytes.toString().trim()}`)
    },
  })
  await t.rejects(run, { message: 'broke on one' })
  t.same(sleepers(), [])
})

function residentMiB(): number {
  return residentKib(process.pid) / 1024
}
