import { randomBytes } from 'node:crypto'
import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { Log } from '../kernel/log.ts'
import type { SigningSecrets } from '../services/hooks/signing-secrets.ts'
import { UsageError, type Output } from './command.ts'
import { controlPath, runRemotely } from './control.ts'
import { runProvider, type ProviderTools } from './provider.ts'

/** Runs a command that needs the database, with the tools at hand. */
export function runOnDatabase(
  argv: readonly string[],
  tools: ProviderTools,
  output: Output,
): Promise<number> {
  const [command, ...args] = argv
  if (command === 'provider') return runProvider(args, tools, output)
  throw new UsageError(`"${command ?? ''}" can't be run here`)
}

/**
 * Runs such a command from its own process: by the server that has the embedded database when one
 * runs, else on the database itself, migrated first.
 */
export async function runWithDatabase(
  argv: readonly string[],
  config: ConfigSource,
  secrets: SigningSecrets,
  log: Log,
  output: Output,
): Promise<number> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  if (url === undefined) {
    const code = await runRemotely(controlPath(dataDirectory), argv, output)
    if (code !== undefined) return code
  }
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    await migrate(database.db)
    const tools = { db: database.db, secrets, random: randomBytes, now: () => new Date() }
    return await runOnDatabase(argv, tools, output)
  } finally {
    await database.close()
  }
}
