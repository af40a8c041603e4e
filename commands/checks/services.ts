import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { messageOf } from '../../kernel/log.ts'
import { INVENTORY_FILE } from '../../services/ops/inventory.ts'
import { readJsonFile, type FileKind } from '../../services/ops/json-file.ts'
import { PRICES_FILE } from '../../services/ops/runners/budget.ts'
import { probeSandbox } from '../../services/ops/tools/sandbox.ts'
import { fail, ok, warn, type Finding } from '../output.ts'
import type { ConfigSource } from '../configuration.ts'

/** Checks the files of ops and the program or the model of its runner. */
export async function agentFindings(
  { current }: ConfigSource,
  path: string,
): Promise<readonly Finding[]> {
  const { OPS_INVENTORY: inventory, OPS_PRICES: prices, OPS_UNSANDBOXED: unsandboxed } = current
  const [services, costs] = await Promise.all([
    fileFinding('inventory', INVENTORY_FILE, inventory),
    fileFinding('prices', PRICES_FILE, prices),
  ])
  const { readonly: commands = [] } = services.content ?? {}
  return [
    ...[...services.findings, ...costs.findings, ...runnerFindings(current, path)],
    ...(commands.length > 0 ? [await sandboxFinding(unsandboxed, path)] : []),
  ]
}

/** Checks a JSON file; without one, or if it is wrong, there is no content. */
async function fileFinding<T>(
  what: string,
  kind: FileKind<T>,
  place: string | undefined,
): Promise<{ readonly content?: T; readonly findings: readonly Finding[] }> {
  if (place === undefined) return { findings: [] }
  try {
    return { content: await readJsonFile(kind, place), findings: [ok(what, place)] }
  } catch (error) {
    const problem = `${messageOf(error)}: correct it; ops does not start without it`
    return { findings: [fail(what, problem)] }
  }
}

/**
 * Whether the read-only commands of the inventory can be sandboxed: a model chooses their
 * arguments.
 */
async function sandboxFinding(unsandboxed: boolean, path: string): Promise<Finding> {
  const what = 'sandbox'
  const state = await probeSandbox(path === '' ? {} : { PATH: path })
  if (state.kind === 'works') return ok(what, 'bwrap works')
  const problem = state.problem.replaceAll('\n', ' ')
  const remedy = 'make bwrap (package bubblewrap) work'
  if (unsandboxed) return warn(what, `commands of the inventory run without: ${problem}; ${remedy}`)
  return warn(
    what,
    `commands of the inventory are off: ${problem}; ${remedy}, or set OPS_UNSANDBOXED`,
  )
}

function runnerFindings(current: ConfigSource['current'], path: string): readonly Finding[] {
  const what = 'runner'
  const { OPS_RUNNER: runner, OPS_AGENT_COMMAND: command, OPS_MODEL_URL: url } = current
  if (runner === 'model' && url === undefined)
    return [warn(what, 'model, and no session can run: set OPS_MODEL_URL')]
  if (runner !== 'cli') return []
  const [program = ''] = command
  const places = program.includes('/')
    ? [program]
    : path.split(delimiter).map((folder) => join(folder, program))
  const found = places.find(isProgram)
  if (found !== undefined) return [ok(what, `cli, ${found}`)]
  return [
    warn(
      what,
      `cli, and no session can run: there is no program "${program}" in PATH; install it, or set OPS_AGENT_COMMAND`,
    ),
  ]
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const ANSWER_MS = 2_000

/** Whether the broker of the queue replies; hooks also starts without it. */
export async function queueFindings({ current }: ConfigSource): Promise<readonly Finding[]> {
  const { HOOKS_QUEUE_URL: url } = current
  if (url === undefined) return []
  const { protocol, host } = new URL(url)
  const place = `${protocol}//${host}`
  try {
    // Loaded only when configured: the client costs time and memory.
    const { pingRedis } = await import('../../services/hooks/queue/redis.ts')
    await pingRedis(url, ANSWER_MS)
    return [ok('queue', `${place} answers`)]
  } catch (error) {
    return [
      warn(
        'queue',
        `${place} does not answer (${messageOf(error)}): start it, or correct HOOKS_QUEUE_URL`,
      ),
    ]
  }
}
