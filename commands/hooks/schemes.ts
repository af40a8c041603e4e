import { listSenders } from '../../services/hooks/receive/schemes/describe.ts'
import { command, JSON_FLAG } from '../frame/command.ts'
import { printRows } from '../frame/output.ts'

/** `gatehouse schemes`. */
export const commands = [
  command({
    name: 'schemes',
    summary: 'list the senders that are known, and what is verified of each',
    flags: { json: JSON_FLAG },
    needs: 'nothing',
    async run({ flags: { json } }, { output }) {
      printRows(output, json, listSenders(), {
        NAME: ({ name }) => name,
        SENDER: ({ title }) => title,
        VERIFIES: ({ verifies }) => verifies,
        TESTED: ({ tested }) => tested,
        DOCS: ({ docs }) => docs,
      })
    },
  }),
]
