import { transferQueries } from '../db/links/transfer.ts'
import { Fault } from '../kernel/fault.ts'
import { oneOf } from '../kernel/readings.ts'
import { exportLinks, FORMATS } from '../services/links/transfer/files.ts'
import { command, value } from './command.ts'
import { DONE, FAILED } from './output.ts'

/**
 * It fails when the format can't hold one of the links. golink's format has no visibility, and golink
 * shows every link to everybody: no private or secure link is ever written in it.
 */
export const commands = [
  command({
    name: 'export',
    summary: 'print all links, as CSV (complete) or in the format of golink',
    flags: {
      format: value('csv|jsonl', 'jsonl is the one of golink', oneOf(...FORMATS)),
      'public-only': { summary: 'leave private and secure links out' },
    },
    needs: 'database',
    async run({ flags: { format = 'csv', 'public-only': publicOnly } }, { db, output }) {
      const isGolink = format === 'jsonl'
      const hiddenCount =
        isGolink && !publicOnly ? (await transferQueries.countHiddenLinks(db, {})).links : 0
      if (hiddenCount > 0) {
        const what = `${hiddenLinks(hiddenCount)}, which golink's format can't say`
        const ways = '--public-only leaves them out, --format csv has everything'
        throw new Fault(409, 'CONFLICT', `${what}; ${ways}`)
      }
      let code = DONE
      let leftOut = 0
      for await (const part of exportLinks(db, format, publicOnly || isGolink)) {
        leftOut += part.hidden
        for (const line of part.lines) output.data(line)
        for (const slug of part.left) {
          code = FAILED
          output.err(`gatehouse: ${slug} is left out: golink has no places such as {1} in a URL`)
        }
        await output.drained?.()
      }
      if (leftOut > 0) output.err(`gatehouse: ${hiddenLinks(leftOut)}, and left out`)
      return code
    },
  }),
]

function hiddenLinks(count: number): string {
  return count === 1 ? '1 link is private or secure' : `${count} links are private or secure`
}
