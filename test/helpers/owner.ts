import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runFolder } from './run-folder.ts'

/** The part of a tap test that a helper needs: whose end ends what the helper started. */
export type Owner = { teardown(end: () => unknown): unknown }

/** A fresh folder that goes away with the test, at the latest with the run. Teardowns run last-registered first. */
export async function temporaryFolder(t: Owner, name = 'data'): Promise<string> {
  const folder = await mkdtemp(join(runFolder(), `${name}-`))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}
