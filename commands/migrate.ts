import { migrate } from '../db/migrate.ts'
import { command } from './command.ts'
import { DONE } from './output.ts'

export const commands = [
  command({
    name: 'migrate',
    summary: 'bring the database up to date',
    needs: 'database',
    async run(_call, { db, output }) {
      const applied = await migrate(db)
      for (const name of applied) output.out(`applied ${name}`)
      if (applied.length === 0) output.out('nothing to apply')
      return DONE
    },
  }),
]
