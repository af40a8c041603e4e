import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Database } from '../db/client.ts'
import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import { refuseUnfitServer } from '../db/server.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { Log } from '../kernel/log.ts'
import type { SigningSecrets } from '../services/hooks/secrets.ts'
import { UsageError, type Output, type Surroundings } from './command.ts'
import { controlPath, runRemotely } from './control.ts'
import { serviceUrl, type Addresses } from './places.ts'

/** What a command that needs the database is run with, in its own process or inside the server. */
export interface DatabaseContext {
  readonly config: ConfigSource
  readonly secrets: SigningSecrets
  readonly log: Log
  /** Where the services of this process listen, when it has any. */
  readonly addresses?: Addresses
  /** Has the links service of this process drop what it knows of a slug, where there is one. */
  readonly forget?: (slug: string) => void
}

const TOOLS = { random: randomBytes, now: () => new Date() }

/**
 * A command on the database; its file is loaded when it is called. `check` throws `UsageError` for wrong
 * arguments, before anything is opened.
 */
interface DatabaseCommand {
  readonly check: (args: readonly string[]) => Promise<unknown>
  /** Opens what the command reads, in the process that was called. */
  readonly input?: (args: readonly string[], stdin: Readable) => Promise<Readable>
  readonly run: (
    args: readonly string[],
    db: Database,
    context: DatabaseContext,
    output: Output,
    input: AsyncIterable<Uint8Array>,
  ) => Promise<number>
}

/** The commands that need the database. */
const COMMANDS: Readonly<Record<string, DatabaseCommand>> = {
  check: {
    check: async (args) => (await import('./check.ts')).parseCheck(args),
    // Asked by a `check` in a process of its own, which looks at everything else.
    async run(_args, db, context, output) {
      const { lookAtDatabase } = await import('./checks/database.ts')
      const { reportFindings } = await import('./checks/finding.ts')
      return reportFindings(await lookAtDatabase(db, context), true, output)
    },
  },
  migrate: {
    async check(args) {
      if (args.length > 0) throw new UsageError('"migrate" takes no argument')
    },
    run: async (_args, db, _context, output) =>
      (await import('./migrate.ts')).runMigrate(db, output),
  },
  provider: {
    check: async (args) => (await import('./provider-arguments.ts')).parseProvider(args),
    async run(args, db, { config, secrets }, output) {
      const { runProvider } = await import('./provider.ts')
      const overlapSeconds = config.current.HOOKS_ROTATION_OVERLAP_S
      return runProvider(args, { ...TOOLS, overlapSeconds, db, secrets }, output)
    },
  },
  endpoint: {
    check: async (args) => (await import('./endpoint.ts')).parseEndpoint(args),
    async run(args, db, { config, addresses }, output) {
      const { runEndpoint } = await import('./endpoint.ts')
      const baseUrl = serviceUrl('hooks', config, addresses)
      return runEndpoint(args, { ...TOOLS, db, baseUrl }, output)
    },
  },
  user: {
    check: async (args) => (await import('./user.ts')).parseUser(args),
    run: async (args, db, _context, output) =>
      (await import('./user.ts')).runUser(args, { ...TOOLS, db }, output),
  },
  token: {
    check: async (args) => (await import('./token.ts')).parseToken(args, TOOLS.now()),
    run: async (args, db, _context, output) =>
      (await import('./token.ts')).runToken(args, { ...TOOLS, db }, output),
  },
  import: {
    check: async (args) => (await import('./import.ts')).parseImport(args),
    input: async (args, stdin) => (await import('./import.ts')).openImport(args, stdin),
    async run(args, db, { config, log, addresses, forget = () => undefined }, output, input) {
      const { runImport } = await import('./import.ts')
      const { hostsOfLinks } = await import('./own-hosts.ts')
      const ownHosts = hostsOfLinks(config, addresses)
      return runImport(args, { ...TOOLS, db, log, ownHosts, forget, input }, output)
    },
  },
  export: {
    check: async (args) => (await import('./export.ts')).parseExport(args),
    run: async (args, db, _context, output) =>
      (await import('./export.ts')).runExport(args, db, output),
  },
  // What the server does of it; `runBackup` is the command.
  backup: {
    check: async (args) => (await import('./backup.ts')).parseBackup(args),
    run: async (_args, db, context, output, input) =>
      (await import('./backup.ts')).lendCopy(db, context, output, input),
  },
}

export function isDatabaseCommand(name: string): boolean {
  return Object.hasOwn(COMMANDS, name)
}

/** Runs such a command on an open database. */
export async function runOnDatabase(
  [name = '', ...args]: readonly string[],
  db: Database,
  context: DatabaseContext,
  output: Output,
  input: AsyncIterable<Uint8Array>,
): Promise<number> {
  return commandOf(name).run(args, db, context, output, input)
}

function commandOf(name: string): DatabaseCommand {
  const command = isDatabaseCommand(name) ? COMMANDS[name] : undefined
  if (command === undefined) throw new UsageError(`"${name}" is no command on the database`)
  return command
}

/**
 * Runs such a command from its own process: by the server that has the embedded database when one
 * runs, else on the database itself, migrated first, except by `check`, which changes nothing.
 */
export async function runWithDatabase(
  argv: readonly string[],
  context: DatabaseContext,
  { environment, input: stdin, output }: Pick<Surroundings, 'environment' | 'input' | 'output'>,
): Promise<number> {
  const [name = '', ...args] = argv
  const command = commandOf(name)
  await command.check(args)
  if (name === 'check') {
    return (await import('./check.ts')).runCheck(args, { ...context, environment }, output)
  }
  const input = (await command.input?.(args, stdin)) ?? Readable.from([])
  const { config, log } = context
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  if (url === undefined) {
    const code = await runRemotely(controlPath(dataDirectory), argv, output, input)
    if (code !== undefined) return code
  }
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    if (url !== undefined) await refuseUnfitServer(database.db)
    if (name !== 'migrate') await migrate(database.db)
    return await runOnDatabase(argv, database.db, context, output, input)
  } finally {
    await database.close()
  }
}
