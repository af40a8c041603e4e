import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend } from './backends.ts'
import { ended, startOps, startOpsProcess, type OpsServer } from './ops.ts'
import { temporaryFolder, type Owner } from './owner.ts'
import type { Env } from './program.ts'

/** A line of a session's output. */
type Line = Readonly<{ seq: number } & Record<'at' | 'kind' | 'text', string>>

/** The line with which claude ends. */
export function claudeResult(fields: object = {}) {
  const usage = { 'some-model': { costUSD: 0.25, costBasis: 'list' } }
  return {
    type: 'result',
    subtype: 'success',
    is_error: false,
    num_turns: 1,
    result: 'All well.',
    total_cost_usd: 0.25,
    modelUsage: usage,
    model_usage_since_last_result: usage,
    ...fields,
  }
}

/** Opens an ops service with the runner `cli` in this process; its first session, at start, has ended. */
export function openAgentOps(t: Owner, backend: Backend, env: Env = {}) {
  return agentOps(t, env, (variables) => startOps(t, backend, variables))
}

/** An ops service whose agent is a shell script. */
export type AgentOps = Awaited<ReturnType<typeof openAgentOps>>

/** The same in a process of its own. */
export function startAgentOps(t: Owner, backend: Backend, env: Env = {}) {
  return agentOps(t, env, (variables) => startOpsProcess(t, backend, variables))
}

async function agentOps<Ops extends Pick<OpsServer, 'api'>>(
  t: Owner,
  env: Env,
  start: (variables: Env) => Promise<Ops>,
) {
  const agent = await makeAgent(t)
  agent.says([claudeResult()])
  const results = env['OPS_RESULTS_DIR'] ?? (await temporaryFolder(t, 'results'))
  const ops = await start({
    OPS_RUNNER: 'cli',
    OPS_AGENT_COMMAND: agent.command,
    OPS_RESULTS_DIR: results,
    ...env,
  })
  await ended(ops)
  /** What a session has put out so far, from its file. */
  function lines(session: number): readonly Line[] {
    const file = join(results, `session-${session}.ndjson`)
    if (!existsSync(file)) return []
    const written = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    return written.map((line): Line => JSON.parse(line))
  }
  return { ...ops, agent, lines }
}

/** What every agent does first: it finds its tools, and asks whether they are there. */
const FIND_TOOLS = `for tools; do case $tools in *'"url":"'*) break; esac; done
tools=\${tools#*'"url":"'}
tools=\${tools%%'"'*}
ask() {
  curl -sS "$tools" -H "authorization: Bearer $GATEHOUSE_TOOLS_TOKEN" \\
    -H 'content-type: application/json' -H 'accept: application/json' "$@"
}
ask -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' > /dev/null 2>&1
`

/** Makes an agent: a script, whose arguments are those of the agent; its command is what runs it. */
export async function makeAgent(t: Owner) {
  const folder = await temporaryFolder(t, 'agent')
  const script = join(folder, 'agent.sh')
  /** Has the next session run this script. */
  const does = (text: string) => writeFileSync(script, `${FIND_TOOLS}${text}`)
  let files = 0
  /** A file of its own for a text that a shell could misread. */
  function keep(text: string) {
    const file = join(folder, `text-${++files}`)
    writeFileSync(file, text)
    return file
  }
  /** A command for the script: it prints these lines. */
  const prints = (...lines: readonly (object | string)[]) =>
    `cat ${keep(lines.map(textOf).join(''))}`
  /** A command for the script: it calls a tool of its session, and prints the answer as a line. */
  function calls(name: string, args: object) {
    const params = { name, arguments: args }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    return `{ ask --data-binary @${keep(JSON.stringify(message))}; echo; }`
  }
  return {
    /** A folder of the test's own, for what the script writes and reads. */
    folder,
    does,
    calls,
    command: `sh ${script}`,
    prints,
    /** Has the next session print these lines, and end with this code. */
    says: (lines: readonly (object | string)[], code = 0) =>
      does(`${prints(...lines)}\nexit ${code}\n`),
  }
}

function textOf(line: object | string): string {
  return `${typeof line === 'string' ? line : JSON.stringify(line)}\n`
}

/** The processes whose command line has a text, such as the time that a sleep takes. */
export function processesWith(text: string) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && commandLine(name).includes(text))
    .map(Number)
}

function commandLine(pid: string) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    // It ended between the list and the look.
    return ''
  }
}
