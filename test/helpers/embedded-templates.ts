import { cp, mkdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openEmbedded } from '../../db/embedded/open.ts'
import { migrate } from './migrate.ts'
import type { Env } from './program.ts'

/** Environment variable by which test/run.ts hands its templates to every test file. */
export const EMBEDDED_TEMPLATES = 'GATEHOUSE_TEST_EMBEDDED_TEMPLATES'

/** An embedded database without any table, or as the first start leaves it. */
export type EmbeddedState = 'empty' | 'migrated'

/** Makes embedded databases once for a whole run: each creation costs seconds of processor time. */
export async function makeEmbeddedTemplates(folder: string): Promise<string> {
  const templates = join(folder, 'embedded-templates')
  const engine = await openEmbedded({ directory: join(templates, 'empty') })
  await engine.close()
  const env = { GATEHOUSE_DATA_DIR: join(templates, 'migrated') }
  await copyDatabase(join(templates, 'empty'), env.GATEHOUSE_DATA_DIR)
  await migrate(env)
  return templates
}

/**
 * Puts a copy of the run's template where a server will look for its embedded database, unless there
 * is one. A file that runs alone has no template: there the server creates its own, like a user's.
 */
export async function seedEmbedded(env: Env, state: EmbeddedState = 'migrated'): Promise<void> {
  const templates = process.env[EMBEDDED_TEMPLATES]
  const directory = env['GATEHOUSE_DATA_DIR']
  if (templates === undefined || templates === '' || directory === undefined) return
  if (env['DATABASE_URL'] !== undefined || existsSync(join(directory, 'pg'))) return
  await copyDatabase(join(templates, state), directory)
}

async function copyDatabase(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  await cp(join(from, 'pg'), join(to, 'pg'), { recursive: true })
}
