import { open } from 'node:fs/promises'
import { Fault } from '../../kernel/fault.ts'
import { accepted, oneOf } from '../../kernel/variables.ts'
import {
  importLinks,
  type ImportTotals,
  type LineReport,
} from '../../services/links/transfer/transfer/import.ts'
import type { LinkParts } from '../../services/links/names/links/links.ts'
import { exportLinks, readLinks } from '../../services/links/transfer/transfer/files.ts'
import { FORMATS } from '../../services/links/transfer/transfer/records.ts'
import type { ColumnReport } from '../../services/links/transfer/transfer/columns.ts'
import { commandUser } from '../../services/links/people/users/operator.ts'
import { OPERATOR_EMAIL, readEmail } from '../../services/links/people/users/users.ts'
import { hostsOfLinks, linkSchemes, takesGroups } from '../frame/configuration.ts'
import { command, JSON_FLAG, text, value, type DatabaseTools } from '../frame/command.ts'
import { knownUser } from './users.ts'
import { DONE, FAILED } from '../frame/output.ts'
import { transferQueries } from '../../db/links/transfer/transfer.ts'

const email = accepted('an e-mail address', readEmail)

export const commands = [
  // Reports each line, then the totals. It fails when a line was not taken.
  command({
    name: 'import',
    summary: 'take links from CSV or what another program exports, and say what became of each',
    args: { file: text('FILE|-', 'a file, - is standard input') },
    flags: {
      'dry-run': { summary: 'say what would happen, and change nothing' },
      update: { summary: 'change links that exist' },
      owner: value('EMAIL', 'the owner of links without one', email),
      'create-users': { summary: 'add owners who are no users yet' },
      json: JSON_FLAG,
    },
    needs: 'database',
    // The caller opens the file: the server may not be allowed to read it.
    async openInput({ args: { file } }, stdin) {
      return file === '-' ? stdin : (await open(file)).createReadStream()
    },
    async run({ flags }, tools) {
      const { owner, json, 'dry-run': dryRun, 'create-users': createUsers } = flags
      const { config, output } = tools
      if (owner !== undefined && !createUsers) await knownUser(tools.db, owner)
      async function report(reports: readonly LineReport[]) {
        for (const line of reports) {
          output.out(json ? JSON.stringify(line) : lineText(line, dryRun))
        }
        await output.drained?.()
      }
      const importer = {
        email: OPERATOR_EMAIL,
        user: () => commandUser(tools, tools.now()),
      }
      const groups = takesGroups(config)
      const options = { owner, dryRun, createUsers, takesGroups: groups, importer }
      const file = readLinks(tools.input)
      const totals = await importLinks(
        { ...tools, ...linkParts(tools) },
        { ...options, update: flags.update },
        file.lines,
        report,
      )
      const { source, columns } = file
      if (json) output.out(JSON.stringify({ dry_run: dryRun, totals, source, columns }))
      else {
        for (const column of columns) {
          if (column.becomes === null) output.out(columnText(column))
        }
        output.out(totalsText(totals, dryRun))
      }
      return totals.refused + totals.conflict === 0 ? DONE : FAILED
    },
  }),
  // It fails when golink's format can't hold one of the links. That format has no visibility, and
  // golink shows every link to everybody: no private or secure link is ever written in it.
  command({
    name: 'export',
    summary: 'print all links, as CSV (complete) or in the format of golink',
    flags: {
      format: value('csv|jsonl', 'jsonl is the one of golink', oneOf(...FORMATS)),
      'public-only': { summary: 'leave private and secure links out' },
      'for-spreadsheets': { summary: "CSV in which no cell is a formula; it can't be imported" },
    },
    needs: 'database',
    async run({ flags }, { db, output }) {
      const { format = 'csv', 'public-only': publicOnly, 'for-spreadsheets': guarded } = flags
      const isGolink = format === 'jsonl'
      const count = await transferQueries.countHiddenLinks(db, {})
      const hidden = isGolink || publicOnly ? count.links : 0
      if (hidden > 0 && !publicOnly) {
        const what = `${hiddenLinks(hidden)}, which golink's format can't say`
        const ways = '--public-only leaves them out, --format csv has everything'
        throw new Fault(409, 'CONFLICT', `${what}; ${ways}`)
      }
      let code = DONE
      for await (const page of exportLinks(db, format, publicOnly || isGolink, guarded)) {
        for (const exported of page) {
          if ('line' in exported) output.data(exported.line)
          else {
            code = FAILED
            output.err(`gatehouse: ${exported.slug} is left out: ${exported.problem}`)
          }
        }
        await output.drained?.()
      }
      if (hidden > 0) output.err(`gatehouse: ${hiddenLinks(hidden)}, and left out`)
      return code
    },
  }),
]

/** What commands change links with. */
export function linkParts(tools: DatabaseTools): LinkParts {
  const ownHosts = hostsOfLinks(tools.config, tools.addresses)
  const schemes = () => linkSchemes(tools.config)
  return { forget: () => undefined, ...tools, ownHosts, schemes }
}

/** A line of the report; short slugs are padded to a column. */
function lineText({ line, slug, outcome, message }: LineReport, dryRun: boolean) {
  const words = [
    String(line).padStart(6),
    wordFor(outcome, dryRun).padEnd(12),
    printable(slug).padEnd(24),
    printable(message),
  ]
  return words.join('  ').trimEnd()
}

/** A column that is not taken over. */
function columnText({ column, note }: ColumnReport) {
  return `column ${printable(column)} is not taken over: ${printable(note)}`
}

function totalsText(totals: ImportTotals, dryRun: boolean) {
  const { users, ...outcomes } = totals
  const counts = Object.entries(outcomes).map(
    ([outcome, count]) => `${wordFor(outcome as LineReport['outcome'], dryRun)} ${count}`,
  )
  const people = `${dryRun ? 'new users would be' : 'new users'} ${users}`
  const done = [...counts, people].join(', ')
  return dryRun ? `dry run, nothing was changed: ${done}` : done
}

function wordFor(outcome: LineReport['outcome'], dryRun: boolean) {
  if (!dryRun || !['created', 'updated'].includes(outcome)) return outcome
  return outcome === 'created' ? 'would create' : 'would update'
}

/** The text of a file without control characters. */
function printable(text: string) {
  return text.replaceAll(/\p{C}/gu, '?')
}

function hiddenLinks(count: number) {
  return count === 1 ? '1 link is private or secure' : `${count} links are private or secure`
}
