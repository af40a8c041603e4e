import { migrate } from '../db/migrate.ts'
import { meantText } from '../kernel/closest.ts'
import {
  command,
  UsageError,
  type Command,
  type CommandGroup,
  type CommandTable,
} from './frame/command.ts'
import { CONFIG_FLAGS } from './frame/configuration.ts'

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

type Load = () => Promise<CommandFile>

/**
 * The commands of each group by their first words. A file is loaded when one of its commands is
 * called: from sources, loading all of them takes longer than most commands.
 */
const GROUPS: Readonly<Record<CommandGroup, Readonly<Record<string, Load>>>> = {
  house: {
    serve: async () => await import('./house/serve.ts'),
    init: async () => await import('./house/init.ts'),
    check: async () => await import('./house/check.ts'),
    migrate: async () => ({ commands }),
    audit: async () => await import('./house/audit.ts'),
    backup: async () => await import('./house/backup.ts'),
    restore: async () => await import('./house/transfer.ts'),
    db: async () => await import('./house/transfer.ts'),
    docs: async () => await import('./house/docs.ts'),
    completion: async () => await import('./frame/help.ts'),
    version: async () => ({ commands }),
    help: async () => await import('./frame/help.ts'),
  },
  hooks: {
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
  },
  links: {
    link: async () => await import('./links/link.ts'),
    import: async () => await import('./links/links.ts'),
    export: async () => await import('./links/links.ts'),
    user: async () => await import('./links/users.ts'),
    token: async () => await import('./links/users.ts'),
  },
  ops: {
    checks: async () => await import('./ops/checks.ts'),
    silences: async () => await import('./ops/silences.ts'),
    notify: async () => await import('./ops/notify.ts'),
    approvals: async () => await import('./ops/approvals.ts'),
    approve: async () => await import('./ops/approvals.ts'),
    agent: async () => await import('./ops/agent.ts'),
    assistant: async () => await import('./ops/assistant.ts'),
  },
}

const FILES = new Map(Object.values(GROUPS).flatMap((files) => Object.entries(files)))
const WORDS = [...FILES.keys()]

async function commandsOf(word: string): Promise<readonly Command[]> {
  const load = FILES.get(word)
  if (load === undefined) {
    if (!word.startsWith('-')) {
      throw new UsageError(`There is no command "${word}"${meantText(word, WORDS)}`)
    }
    // A value given with a flag may be a secret.
    const flag = word.replace(/=.*/s, '')
    const known = [...CONFIG_FLAGS.keys()].map((name) => `--${name}`)
    throw new UsageError(`There is no flag "${flag}"${meantText(flag, known)}`)
  }
  return (await load()).commands.filter(({ name }) => name.split(' ')[0] === word)
}

async function commandsIn(words: readonly string[]): Promise<readonly Command[]> {
  return (await Promise.all(words.map(commandsOf))).flat()
}

export const commandTable: CommandTable = {
  of: commandsOf,
  has: (word) => FILES.has(word),
  inGroup: async (group) => await commandsIn(Object.keys(GROUPS[group])),
  all: async () => await commandsIn(WORDS),
}
