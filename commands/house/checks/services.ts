import { messageOf } from '../../../kernel/log.ts'
import { findProgram } from '../../../kernel/processes/find-program.ts'
import { withoutToken } from '../../../services/hooks/receive/recoveries/schedule.ts'
import { INVENTORY_FILE, type Service } from '../../../services/ops/watch/inventory/inventory.ts'
import { readJsonFile, type FileKind } from '../../../services/ops/watch/inventory/json-file.ts'
import { missingRunbooks, readRunbooks } from '../../../services/ops/watch/runbooks/runbooks.ts'
import { PRICES_FILE } from '../../../services/ops/agent/runners/budget.ts'
import { probeSandbox } from '../../../services/ops/agent/tools/sandbox.ts'
import { withNote } from '../../../services/ops/watch/checks/hardening.ts'
import { fail, ok, warn, type Findings } from '../../frame/output.ts'
import { recoverySchedule, type ConfigSource } from '../../frame/configuration.ts'

/** Checks the files of ops and the program or the model of its runner. */
export async function agentFindings({ current }: ConfigSource, path: string) {
  const services = await fileFinding('inventory', INVENTORY_FILE, current.OPS_INVENTORY)
  const costs = await fileFinding('prices', PRICES_FILE, current.OPS_PRICES)
  const { readonly: commands = [], services: listed = [] } = services.content ?? {}
  const runbooks = await runbookFindings(current.OPS_RUNBOOKS, listed)
  const files = [...services.findings, ...costs.findings, ...runbooks]
  const findings = [...files, ...runnerFindings(current, path)]
  if (commands.length > 0) findings.push(await sandboxFinding(current.OPS_UNSANDBOXED, path))
  return findings
}

/** Checks a JSON file; without one, or if it is wrong, there is no content. */
async function fileFinding<T>(
  what: string,
  kind: FileKind<T>,
  place: string | undefined,
): Promise<{ content?: T; findings: Findings }> {
  if (place === undefined) return { findings: [] }
  try {
    return { content: await readJsonFile(kind, place), findings: [ok(what, place)] }
  } catch (error) {
    const problem = `${messageOf(error)}: correct it; ops does not start without it`
    return { findings: [fail(what, problem)] }
  }
}

/** Checks the folder of runbooks, and the names of runbooks in the inventory. */
async function runbookFindings(folder: string | undefined, services: readonly Service[]) {
  const what = 'runbooks'
  const { runbooks, problems } =
    folder === undefined ? { runbooks: [], problems: [] } : await readRunbooks(folder)
  const found = folder === undefined ? [] : [ok(what, `${folder}: ${runbooks.length}`)]
  const remedy = folder === undefined ? 'set OPS_RUNBOOKS' : 'write it, or correct the inventory'
  return [
    ...(problems.length === 0 ? found : []),
    ...problems.map(({ file, problem }) => {
      return warn(what, `${file} is left out: ${problem}; correct or move it`)
    }),
    ...missingRunbooks(services, runbooks).map(({ where, runbook }) => {
      return warn(what, `${where} names "${runbook}", which is not there: ${remedy}`)
    }),
  ]
}

/**
 * Whether the read-only commands of the inventory can be sandboxed: a model chooses their
 * arguments.
 */
async function sandboxFinding(unsandboxed: boolean, path: string) {
  const what = 'sandbox'
  const state = await probeSandbox(withNote, path === '' ? {} : { PATH: path })
  if (state.kind === 'works') return ok(what, 'bwrap works')
  const problem = state.problem.replaceAll('\n', ' ')
  const effect = unsandboxed ? 'run without' : 'are off'
  const other = unsandboxed ? '' : ', or set OPS_UNSANDBOXED'
  const remedy = `make bwrap (package bubblewrap) work${other}`
  return warn(what, `commands of the inventory ${effect}: ${problem}; ${remedy}`)
}

function runnerFindings(current: ConfigSource['current'], path: string) {
  const what = 'runner'
  const { OPS_RUNNER: runner, OPS_MODEL_URL: url } = current
  if (runner === 'model' && url === undefined)
    return [warn(what, 'model, and no session can run: set OPS_MODEL_URL')]
  if (runner !== 'cli') return []
  const [program = ''] = current.OPS_AGENT_COMMAND
  const found = findProgram(program, path)
  if (found !== undefined) return [ok(what, `cli, ${found}`)]
  const problem = `cli, and no session can run: there is no program "${program}" in PATH`
  return [warn(what, `${problem}; install it, or set OPS_AGENT_COMMAND`)]
}

/** Senders whose failed deliveries are not looked up, for want of a token. */
export function recoveryFindings(config: ConfigSource) {
  return withoutToken(recoverySchedule(config)).map(({ name, variable }) =>
    warn('HOOKS_RECOVER', `${name} is not looked up: set ${variable}`),
  )
}

const ANSWER_MS = 2_000

/** Whether the broker of the queue replies; hooks also starts without it. */
export async function queueFindings({ current }: ConfigSource) {
  const { HOOKS_QUEUE_URL: url } = current
  if (url === undefined) return []
  const { protocol, host } = new URL(url)
  const place = `${protocol}//${host}`
  try {
    // Loaded only when configured: the client costs time and memory.
    const { pingRedis } = await import('../../../services/hooks/agents/queues/redis.ts')
    await pingRedis(url, ANSWER_MS)
    return [ok('queue', `${place} answers`)]
  } catch (error) {
    const problem = `${place} does not answer (${messageOf(error)})`
    return [warn('queue', `${problem}: start it, or correct HOOKS_QUEUE_URL`)]
  }
}
