import { cp, mkdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openEmbedded } from '../../db/embedded/open.ts'
import type { Env } from './program.ts'

/** Environment variable by which test/run.ts hands its template to every test file. */
export const EMBEDDED_TEMPLATE = 'GATEHOUSE_TEST_EMBEDDED_TEMPLATE'

/** Makes an empty embedded database once for a whole run: each creation costs seconds of processor time. */
export async function makeEmbeddedTemplate(folder: string): Promise<string> {
  const directory = join(folder, 'embedded-template')
  const engine = await openEmbedded({ directory })
  await engine.close()
  return directory
}

/**
 * Puts a copy of the run's template where a server will look for its embedded database, unless there
 * is one. A file that runs alone has no template: there the server creates its own, like a user's.
 */
export async function seedEmbedded(env: Env): Promise<void> {
  const template = process.env[EMBEDDED_TEMPLATE]
  const directory = env['GATEHOUSE_DATA_DIR']
  if (template === undefined || template === '' || directory === undefined) return
  if (env['DATABASE_URL'] !== undefined || existsSync(join(directory, 'pg'))) return
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await cp(join(template, 'pg'), join(directory, 'pg'), { recursive: true })
}
