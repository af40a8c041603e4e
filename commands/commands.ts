import { migrate } from '../db/migrate.ts'
import { command, UsageError, type Command, type CommandTable } from './frame/command.ts'

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
  serve: async () => await import('./house/serve.ts'),
  init: async () => await import('./house/init.ts'),
  check: async () => await import('./house/check.ts'),
  migrate: async () => ({ commands }),
  provider: async () => await import('./hooks/provider.ts'),
  schemes: async () => await import('./hooks/schemes.ts'),
  destination: async () => await import('./hooks/destination.ts'),
  endpoint: async () => await import('./hooks/endpoint.ts'),
  events: async () => ({
    commands: [
      ...(await import('./hooks/events.ts')).commands,
      ...(await import('./hooks/events-replay.ts')).commands,
    ],
  }),
  forward: async () => await import('./hooks/forward.ts'),
  'send-sample': async () => await import('./hooks/send-sample.ts'),
  recover: async () => await import('./hooks/recover.ts'),
  notify: async () => await import('./ops/notify.ts'),
  user: async () => await import('./links/users.ts'),
  token: async () => await import('./links/users.ts'),
  approvals: async () => await import('./ops/approvals.ts'),
  approve: async () => await import('./ops/approvals.ts'),
  checks: async () => await import('./ops/checks.ts'),
  assistant: async () => await import('./ops/assistant.ts'),
  agent: async () => await import('./ops/agent.ts'),
  silences: async () => await import('./ops/silences.ts'),
  link: async () => await import('./links/link.ts'),
  import: async () => await import('./links/links.ts'),
  export: async () => await import('./links/links.ts'),
  audit: async () => await import('./house/audit.ts'),
  backup: async () => await import('./house/backup.ts'),
  restore: async () => await import('./house/transfer.ts'),
  db: async () => await import('./house/transfer.ts'),
  docs: async () => await import('./house/docs.ts'),
  completion: async () => await import('./frame/help.ts'),
  version: async () => ({ commands }),
  help: async () => await import('./frame/help.ts'),
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
