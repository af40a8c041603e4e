import { migrate } from '../db/migrate.ts'
import { command, UsageError, type Command, type CommandTable } from './command.ts'

/** The commands of this file. */
const commands = [
  command({
    name: 'migrate',
    summary: 'bring the database up to date',
    needs: 'database',
    async run(_call, { db, output }) {
      const applied = await migrate(db)
      for (const name of applied) output.out(`applied ${name}`)
      if (applied.length === 0) output.out('nothing to apply')
    },
  }),
  command({
    name: 'version',
    summary: 'print the version',
    needs: 'nothing',
    async run(_call, { version: text, output }) {
      output.out(text)
    },
  }),
]

interface CommandFile {
  commands: readonly Command[]
}

/**
 * Where the commands of each first word stand. A file is loaded when one of its commands is
 * called: from sources, loading all of them takes longer than most commands.
 */
const FILES: Readonly<Record<string, () => Promise<CommandFile>>> = {
  serve: async () => await import('./serve.ts'),
  init: async () => await import('./init.ts'),
  check: async () => await import('./check.ts'),
  migrate: async () => ({ commands }),
  provider: async () => await import('./provider.ts'),
  schemes: async () => await import('./schemes.ts'),
  destination: async () => await import('./destination.ts'),
  endpoint: async () => await import('./endpoint.ts'),
  events: async () => ({
    commands: [
      ...(await import('./events.ts')).commands,
      ...(await import('./events-replay.ts')).commands,
    ],
  }),
  forward: async () => await import('./forward.ts'),
  'send-sample': async () => await import('./send-sample.ts'),
  recover: async () => await import('./recover.ts'),
  notify: async () => await import('./notify.ts'),
  user: async () => await import('./users.ts'),
  token: async () => await import('./users.ts'),
  approvals: async () => await import('./approvals.ts'),
  approve: async () => await import('./approvals.ts'),
  checks: async () => await import('./ops-checks.ts'),
  assistant: async () => await import('./assistant.ts'),
  agent: async () => await import('./agent.ts'),
  silences: async () => await import('./silences.ts'),
  link: async () => await import('./link.ts'),
  import: async () => await import('./links.ts'),
  export: async () => await import('./links.ts'),
  audit: async () => await import('./audit.ts'),
  backup: async () => await import('./backup.ts'),
  restore: async () => await import('./transfer.ts'),
  db: async () => await import('./transfer.ts'),
  docs: async () => await import('./docs.ts'),
  completion: async () => await import('./help.ts'),
  version: async () => ({ commands }),
  help: async () => await import('./help.ts'),
}

async function commandsOf(word: string): Promise<readonly Command[]> {
  const load = Object.hasOwn(FILES, word) ? FILES[word] : undefined
  if (load === undefined) {
    if (!word.startsWith('-')) throw new UsageError(`There is no command "${word}"`)
    // A value given with a flag may be a secret.
    const flag = word.replace(/=.*/s, '')
    throw new UsageError(`There is no flag "${flag}"`)
  }
  return (await load()).commands.filter(({ name }) => name.split(' ')[0] === word)
}

export const commandTable: CommandTable = {
  of: commandsOf,
  all: async () => (await Promise.all(Object.keys(FILES).map(commandsOf))).flat(),
}
