import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findLeaks, leakMessage } from './leaks.ts'
import { endOrphans } from './orphans.ts'

/** Environment variable by which test/run.ts hands its folder to every test file. */
export const RUN_FOLDER = 'GATEHOUSE_TEST_FOLDER'

let own: string | undefined

/**
 * The folder that collects this run's transcripts, secrets and process ids. A file that runs alone
 * makes its own, and looks for leaks itself when it ends.
 */
export function runFolder(): string {
  const given = process.env[RUN_FOLDER]
  if (given !== undefined && given !== '') return given
  if (own !== undefined) return own
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
  own = folder
  process.on('exit', () => {
    endOrphans(folder)
    for (const leak of findLeaks(folder)) {
      process.stderr.write(`${leakMessage(leak)}\n`)
      process.exitCode = 1
    }
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}
