import { open } from 'node:fs/promises'
import { userQueries } from '../db/links/users.ts'
import { notFound } from '../kernel/fault.ts'
import { accepted, oneOf } from '../kernel/readings.ts'
import {
  importLinks,
  type ImportTools,
  type ImportTotals,
  type LineReport,
  type Outcome,
} from '../services/links/transfer/import.ts'
import { FORMATS, readLinks } from '../services/links/transfer/files.ts'
import { readEmail } from '../services/links/users.ts'
import { hostsOfLinks } from './addresses.ts'
import { command, JSON_FLAG, text, value, type DatabaseTools } from './command.ts'
import { DONE, FAILED } from './output.ts'

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

/** `gatehouse import FILE`: reports each line, then the totals. It fails when a line was not taken. */
export const commands = [
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
      if (owner !== undefined && !createUsers) await refuseUnknownUser(tools, owner)
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
]

function importTools(tools: DatabaseTools): ImportTools {
  const { db, now, config, addresses, log, forget = () => undefined } = tools
  return { db, now, log, forget, ownHosts: hostsOfLinks(config, addresses) }
}

async function refuseUnknownUser({ db }: DatabaseTools, email: string): Promise<void> {
  if ((await userQueries.findUserByEmail(db, { email })) !== undefined) return
  throw notFound(
    `no user has the e-mail address "${email}"; add one with: gatehouse user add EMAIL`,
  )
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
