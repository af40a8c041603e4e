import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { EMBEDDED_TEMPLATES } from '../helpers/backends.ts'
import { SHARED_POSTGRES } from '../helpers/shared-postgres.ts'
import {
  endOrphans,
  LONG_RUN,
  ROOT,
  RUN_FOLDER,
  runFolder,
  SHORT_LIVES,
} from '../helpers/program.ts'
import { runFile } from '../runner/pool.ts'
import type { PlantedFault } from './faults.ts'

const FILE_SECONDS = 600
const SKIPPED = ['node_modules', '.git', 'data', 'dist']
const never = new AbortController().signal
const unchanged = new Map<string, Promise<boolean>>()

/** The repository in a folder of its own: no other test meets the faults. */
export function copySources() {
  const copy = mkdtempSync(join(runFolder(), 'sources-'))
  const isWanted = (path: string) => !SKIPPED.includes(relative(ROOT, path))
  cpSync(ROOT, copy, { recursive: true, filter: isWanted })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** Whether the test of a fault passes without it; each test runs once. */
export function passesWithout({ path, test }: PlantedFault) {
  const key = `${test} ${isMigration(path)}`
  return unchanged.getOrInsertComputed(key, () => passes(test, ROOT, path))
}

/** Whether the test of a fault passes with it in a copy of the sources. */
export async function passesWith(fault: PlantedFault, copy: string) {
  const path = join(copy, fault.path)
  const before = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    before.replace(fault.find, () => fault.replace),
  )
  try {
    return await passes(fault.test, copy, fault.path)
  } finally {
    writeFileSync(path, before)
  }
}

async function passes(test: string, root: string, path: string) {
  // Not the folder of this run: what a faulty program says is not searched for secrets.
  const folder = mkdtempSync(join(runFolder(), 'faulty-'))
  const env: NodeJS.ProcessEnv = { ...process.env, [RUN_FOLDER]: folder, [SHORT_LIVES]: '1' }
  delete env[LONG_RUN]
  if (isMigration(path)) {
    // The shared databases were migrated without the fault.
    delete env[SHARED_POSTGRES]
    delete env[EMBEDDED_TEMPLATES]
  }
  const { failed } = await runFile(test, { fileSeconds: FILE_SECONDS, signal: never, root, env })
  endOrphans(folder)
  return failed === 0
}

function isMigration(path: string) {
  return path.startsWith('sql/migrations/')
}
