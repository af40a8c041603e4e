import { migrate } from '../db/migrate.ts'
import { oneOf } from '../kernel/readings.ts'
import { SERVICES } from './addresses.ts'
import { command, UsageError, value, type Command } from './command.ts'
import { DONE } from './output.ts'

const serve = command({
  name: 'serve',
  summary: 'run the services, all three unless named; it needs no command: gatehouse hooks',
  args: {
    service: {
      ...value(
        SERVICES.map((service) => `[${service}]`).join(' '),
        'what to run',
        oneOf(...SERVICES),
      ),
      repeated: true,
    },
  },
  needs: 'live configuration',
  run({ args: { service: named } }, tools) {
    const wanted = SERVICES.filter((service) => named.includes(service))
    return tools.serve(wanted.length === 0 ? SERVICES : wanted, tools)
  },
})

const migrateDatabase = command({
  name: 'migrate',
  summary: 'bring the database up to date',
  needs: 'database',
  async run(_call, { db, output }) {
    const applied = await migrate(db)
    for (const name of applied) output.out(`applied ${name}`)
    if (applied.length === 0) output.out('nothing to apply')
    return DONE
  },
})

const version = command({
  name: 'version',
  summary: 'print the version',
  needs: 'nothing',
  async run(_call, { version: text, output }) {
    output.out(text)
    return DONE
  },
})

/**
 * The commands by their first word. Each file is loaded when its command is called: from sources,
 * loading all of them takes longer than most commands.
 */
const FILES: Readonly<Record<string, () => Promise<{ readonly commands: readonly Command[] }>>> = {
  serve: async () => ({ commands: [serve] }),
  check: async () => await import('./check.ts'),
  migrate: async () => ({ commands: [migrateDatabase] }),
  provider: async () => await import('./provider.ts'),
  endpoint: async () => await import('./endpoint.ts'),
  forward: async () => await import('./forward.ts'),
  'send-sample': async () => await import('./send-sample.ts'),
  user: async () => await import('./user.ts'),
  token: async () => await import('./token.ts'),
  import: async () => await import('./import.ts'),
  export: async () => await import('./export.ts'),
  backup: async () => await import('./backup.ts'),
  restore: async () => await import('./restore.ts'),
  db: async () => await import('./db.ts'),
  completion: async () => await import('./completion.ts'),
  version: async () => ({ commands: [version] }),
  help: async () => await import('./help.ts'),
}

/** The commands of one first word. */
export async function commandsOf(word: string): Promise<readonly Command[]> {
  const load = Object.hasOwn(FILES, word) ? FILES[word] : undefined
  if (load === undefined) {
    // A value given with a flag may be a secret.
    const shown = word.startsWith('-') ? word.replace(/=.*/s, '') : word
    throw new UsageError(`There is no ${word.startsWith('-') ? 'flag' : 'command'} "${shown}"`)
  }
  return (await load()).commands
}

/** All commands, in the order of the help. */
export async function allCommands(): Promise<readonly Command[]> {
  const files = await Promise.all(Object.values(FILES).map((load) => load()))
  return files.flatMap(({ commands }) => commands)
}
