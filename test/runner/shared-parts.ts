import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SHARED_BROWSER, startChromium } from '../helpers/browser.ts'
import { EMBEDDED_TEMPLATES, makeEmbeddedTemplates } from '../helpers/backends.ts'
import { RUN_FOLDER, endOrphans } from '../helpers/program.ts'
import { makeServerTemplate, startPostgres } from '../helpers/postgres.ts'
import { SHARED_POSTGRES, SHARED_SOCKET } from '../helpers/shared-postgres.ts'

/**
 * Starts what test files share, hands it over in the environment, and ends it after `body`: the run's folder,
 * PostgreSQL with a migrated template, embedded templates, compiled code, and Chromium where `browser` says so.
 */
export async function withSharedParts<T>(
  { browser }: { browser: boolean },
  body: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
  const compiled = mkdtempSync(join(tmpdir(), 'gatehouse-compiled-'))
  process.env[RUN_FOLDER] = folder
  // Types are stripped and code is compiled once a run, not at each of some hundred starts.
  process.env['NODE_COMPILE_CACHE'] = compiled
  try {
    // PostgreSQL starts in processes of its own, meanwhile.
    const templates = makeEmbeddedTemplates(folder)
    const cluster = await startPostgres()
    try {
      process.env[SHARED_POSTGRES] = cluster.url()
      process.env[SHARED_SOCKET] = cluster.folder
      await makeServerTemplate(cluster)
      process.env[EMBEDDED_TEMPLATES] = await templates
      return browser ? await withChromium(() => body(folder)) : await body(folder)
    } finally {
      await cluster.destroy()
    }
  } finally {
    endOrphans(folder)
    for (const made of [folder, compiled]) {
      rmSync(made, { recursive: true, force: true, maxRetries: 3 })
    }
  }
}

async function withChromium<T>(body: () => Promise<T>) {
  const server = await startChromium()
  try {
    process.env[SHARED_BROWSER] = server.wsEndpoint()
    return await body()
  } finally {
    await server.close()
  }
}
