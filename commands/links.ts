import { open } from 'node:fs/promises'
import { Fault } from '../kernel/fault.ts'
import { accepted, oneOf } from '../kernel/variables.ts'
import {
  importLinks,
  type ImportTools,
  type ImportTotals,
  type LineReport,
  type Outcome,
} from '../services/links/transfer/import.ts'
import { FORMATS, readLinks, exportLinks } from '../services/links/transfer/files.ts'
import { readEmail } from '../services/links/users.ts'
import { hostsOfLinks } from './configuration.ts'
import { command, JSON_FLAG, text, value, type DatabaseTools } from './command.ts'
import { knownUser } from './users.ts'
import { DONE, FAILED } from './output.ts'
import { transferQueries } from '../db/links/transfer.ts'

const FLAGS = {
  format: value(
    'csv|jsonl',
    'the format, recognized unless given; jsonl is the one of golink',
    oneOf(...FORMATS),
  ),
  'dry-run': { summary: 'say what would become of each line, and change nothing' },
  update: { summary: 'change links that exist' },
  owner: value('EMAIL', 'the owner of links without one', accepted('an e-mail address', readEmail)),
  'create-users': { summary: 'add owners who are no users yet' },
  json: JSON_FLAG,
}

export const commands = [
  // Reports each line, then the totals. It fails when a line was not taken.
  command({
    name: 'import',
    summary: 'take links from CSV or an export of golink, and say what became of each line',
    args: {
      file: text('FILE|-', 'a file, - is standard input'),
    },
    flags: FLAGS,
    needs: 'database',
    // The caller opens the file: the server may not be allowed to read it.
    async openInput({ args: { file } }, stdin) {
      return file === '-' ? stdin : (await open(file)).createReadStream()
    },
    async run({ flags }, tools) {
      const { owner, json, format } = flags
      const dryRun = flags['dry-run']
      const createUsers = flags['create-users']
      const { output } = tools
      if (owner !== undefined && !createUsers) await knownUser(tools.db, owner)
      async function report(reports: readonly LineReport[]): Promise<void> {
        for (const line of reports) output.out(json ? JSON.stringify(line) : lineText(line, dryRun))
        await output.drained?.()
      }
      const options = { owner, dryRun, createUsers, update: flags.update }
      const lines = readLinks(tools.input, format)
      const totals = await importLinks(importTools(tools), options, lines, report)
      output.out(json ? JSON.stringify({ dry_run: dryRun, totals }) : totalsText(totals, dryRun))
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

function importTools(tools: DatabaseTools): ImportTools {
  const { db, now, config, addresses, log, forget = () => undefined } = tools
  return { db, now, log, forget, ownHosts: hostsOfLinks(config, addresses) }
}

/** A line of the report, in columns as far as slugs are short. */
function lineText({ line, slug, outcome, message }: LineReport, dryRun: boolean): string {
  const words = [String(line).padStart(6), wordFor(outcome, dryRun).padEnd(12)]
  return [...words, printable(slug).padEnd(24), printable(message)].join('  ').trimEnd()
}

function totalsText(totals: ImportTotals, dryRun: boolean): string {
  const { users, ...outcomes } = totals
  const counts = Object.entries(outcomes).map(
    ([outcome, count]) => `${wordFor(outcome as Outcome, dryRun)} ${count}`,
  )
  const people = `${dryRun ? 'new users would be' : 'new users'} ${users}`
  const done = [...counts, people].join(', ')
  return dryRun ? `dry run, nothing was changed: ${done}` : done
}

function wordFor(outcome: Outcome, dryRun: boolean): string {
  if (!dryRun || !['created', 'updated'].includes(outcome)) return outcome
  return outcome === 'created' ? 'would create' : 'would update'
}

/** The text of a file without control characters. */
function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?')
}

function hiddenLinks(count: number): string {
  return count === 1 ? '1 link is private or secure' : `${count} links are private or secure`
}
