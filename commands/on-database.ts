import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../db/client.ts'
import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import type { ConfigSource } from '../kernel/config.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import type { SigningSecrets } from '../services/hooks/signing-secrets.ts'
import { checkDatabase, parseCheck, reportFindings, type Finding } from './check.ts'
import { UsageError, type Output } from './command.ts'
import { controlPath, runRemotely } from './control.ts'
import { parseEndpoint, runEndpoint } from './endpoint.ts'
import { runMigrate } from './migrate.ts'
import { runProvider } from './provider.ts'
import { parseProvider } from './provider-arguments.ts'

/** What a command that needs the database is run with, in its own process or inside the server. */
export interface DatabaseContext {
  readonly config: ConfigSource
  readonly secrets: SigningSecrets
  readonly log: Log
}

/** The commands that need the database. */
export const DATABASE_COMMANDS: readonly string[] = ['check', 'migrate', 'provider', 'endpoint']

/** Runs such a command on an open database. */
export async function runOnDatabase(
  argv: readonly string[],
  db: Database,
  { config, secrets }: DatabaseContext,
  output: Output,
): Promise<number> {
  const [command, ...args] = argv
  switch (command) {
    case 'check': {
      const { json } = parseCheck(args)
      const findings = await checkDatabase(db, place(config), secrets)
      return reportFindings([configurationFinding(config), ...findings], json, output)
    }
    case 'migrate':
      return runMigrate(db, output)
    case 'provider':
      return runProvider(args, { ...providerTools(config), db, secrets }, output)
    case 'endpoint':
      return runEndpoint(args, { db, random: randomBytes, baseUrl: hooksUrl(config) }, output)
    default:
      throw new UsageError(`"${command ?? ''}" is no command on the database`)
  }
}

/**
 * Runs such a command from its own process: by the server that has the embedded database when one
 * runs, else on the database itself, migrated first, except by `check`, which changes nothing.
 */
export async function runWithDatabase(
  argv: readonly string[],
  context: DatabaseContext,
  output: Output,
): Promise<number> {
  checkUsage(argv)
  const { config, log } = context
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  if (url === undefined) {
    const code = await runRemotely(controlPath(dataDirectory), argv, output)
    if (code !== undefined) return code
  }
  if (argv[0] === 'check') return checkUnopened(argv.slice(1), context, output)
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    if (argv[0] !== 'migrate') await migrate(database.db)
    return await runOnDatabase(argv, database.db, context, output)
  } finally {
    await database.close()
  }
}

/** Wrong arguments are refused before a database is opened, which might create or migrate it. */
function checkUsage([command, ...args]: readonly string[]): void {
  if (command === 'check') parseCheck(args)
  else if (command === 'provider') parseProvider(args)
  else if (command === 'endpoint') parseEndpoint(args)
  else if (args.length > 0) throw new UsageError(`"${command ?? ''}" takes no argument`)
}

async function checkUnopened(
  args: readonly string[],
  context: DatabaseContext,
  output: Output,
): Promise<number> {
  const { config, log } = context
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const { json } = parseCheck(args)
  function report(finding: Omit<Finding, 'what'>): number {
    return reportFindings(
      [configurationFinding(config), { what: 'database', ...finding }],
      json,
      output,
    )
  }
  // Opening the embedded engine would create the directory.
  if (url === undefined && !existsSync(join(dataDirectory, 'pg'))) {
    return report({ ok: true, detail: `embedded, not created yet in ${dataDirectory}` })
  }
  let database
  try {
    database = await openDatabase({ url, dataDirectory }, log)
  } catch (error) {
    return report({ ok: false, detail: `${place(config)}: ${messageOf(error)}` })
  }
  try {
    return await runOnDatabase(['check', ...args], database.db, context, output)
  } finally {
    await database.close()
  }
}

function providerTools({ current }: ConfigSource) {
  const overlapSeconds = current.HOOKS_ROTATION_OVERLAP_S
  return { random: randomBytes, now: () => new Date(), overlapSeconds }
}

/** Where clients reach the hooks service, as far as the configuration tells. */
function hooksUrl({ current: { HOOKS_BASE_URL, HOOKS_ADDR } }: ConfigSource): string {
  const host = HOOKS_ADDR.kind === 'tcp' ? `${HOOKS_ADDR.host}:${HOOKS_ADDR.port}` : 'HOST'
  return HOOKS_BASE_URL ?? `http://${host}`
}

function configurationFinding(config: ConfigSource): Finding {
  return { ok: true, what: 'configuration', detail: `${config.origins.size} variables` }
}

function place({ current }: ConfigSource): string {
  return current.DATABASE_URL === undefined
    ? `embedded in ${current.GATEHOUSE_DATA_DIR}`
    : 'PostgreSQL server'
}
