import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { ConfigSource } from '../../kernel/config.ts'
import { messageOf } from '../../kernel/log.ts'
import { INVENTORY_FILE } from '../../services/ops/inventory/inventory.ts'
import { readJsonFile, type FileKind } from '../../services/ops/json-file.ts'
import { PRICES_FILE } from '../../services/ops/runners/model-prices.ts'
import { doubt, fine, wrong, type Finding } from './finding.ts'

/** What the operations agent needs: its files, and the program or the model of its runner. */
export async function agentFindings(
  { current }: ConfigSource,
  path: string,
): Promise<readonly Finding[]> {
  const { OPS_INVENTORY: inventory, OPS_PRICES: prices } = current
  const files = await Promise.all([
    fileFinding('inventory', INVENTORY_FILE, inventory),
    fileFinding('prices', PRICES_FILE, prices),
  ])
  return [...files.flat(), ...runnerFindings(current, path)]
}

async function fileFinding(
  what: string,
  kind: FileKind<unknown>,
  place: string | undefined,
): Promise<readonly Finding[]> {
  if (place === undefined) return []
  try {
    await readJsonFile(kind, place)
    return [fine(what, place)]
  } catch (error) {
    return [wrong(what, `${messageOf(error)}: correct it; ops does not start without it`)]
  }
}

function runnerFindings(current: ConfigSource['current'], path: string): readonly Finding[] {
  const what = 'runner'
  const { OPS_RUNNER: runner, OPS_AGENT_COMMAND: command, OPS_MODEL_URL: url } = current
  if (runner === 'model' && url === undefined)
    return [doubt(what, 'model, and no session can run: set OPS_MODEL_URL')]
  if (runner !== 'cli') return []
  const [program = ''] = command
  const places = program.includes('/')
    ? [program]
    : path.split(delimiter).map((folder) => join(folder, program))
  const found = places.find(isProgram)
  if (found !== undefined) return [fine(what, `cli, ${found}`)]
  return [
    doubt(
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
