import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Owner } from '../helpers/owner.ts'
import { listIncidents, type NamedIncident } from './incident.ts'
import { judge } from './judge.ts'
import { openStage, type Played, type Stage } from './stage.ts'

// `npm run incidents`: plays the recorded incidents with a model, and prints a table.

const USAGE = `npm run incidents -- --model-url URL [--model NAME] [--key-file FILE] [--prices FILE]
                     [--only NAME]... [--max-turns N] [--output FOLDER]
npm run incidents -- --recorded good|bad [--only NAME]...
npm run incidents -- --list`
const HEAD = ['incident', 'passed', 'what is wrong', 'turns', 'tokens', 'cost', 'seconds']

const OPTIONS = {
  /** An OpenAI-compatible endpoint, as `OPS_MODEL_URL`. */
  'model-url': { type: 'string' },
  model: { type: 'string', default: 'default' },
  /** A file with its key. */
  'key-file': { type: 'string' },
  /** A price table, as `OPS_PRICES`. */
  prices: { type: 'string' },
  only: { type: 'string', multiple: true },
  'max-turns': { type: 'string', default: '30' },
  /** Keeps the output of the sessions there. */
  output: { type: 'string' },
  /** Plays the recorded answers instead of a model. */
  recorded: { type: 'string' },
  list: { type: 'boolean', default: false },
} as const

type Values = ReturnType<typeof readOptions>

try {
  process.exitCode = await main(readOptions())
} catch (error) {
  process.exitCode = refuse(error instanceof Error ? error.message : String(error))
}

function readOptions() {
  return parseArgs({ options: OPTIONS }).values
}

async function main(values: Values) {
  const all = listIncidents()
  const { only = all.map(({ name }) => name), recorded, list } = values
  const unknown = only.find((name) => !all.some((incident) => incident.name === name))
  if (unknown !== undefined) return refuse(`there is no incident "${unknown}": --list names them`)
  const chosen = all.filter(({ name }) => only.includes(name))
  if (list) {
    for (const { name, title } of chosen) say(`${name}: ${title}`)
    return 0
  }
  if (recorded !== undefined && !['good', 'bad'].includes(recorded)) return refuse(USAGE)
  if (recorded === undefined && values['model-url'] === undefined) return refuse(USAGE)
  if (!/^[1-9]\d*$/.test(values['max-turns'])) return refuse('--max-turns is a number from 1 on')
  const ends: (() => unknown)[] = []
  const owner: Owner = { teardown: (end) => ends.unshift(end) }
  try {
    return await playAll(owner, values, chosen)
  } finally {
    for (const end of ends) await end()
  }
}

async function playAll(owner: Owner, values: Values, chosen: readonly NamedIncident[]) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-incidents-'))
  owner.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { recorded } = values
  // It has keys and folders of the tests, which a run with a model does not need.
  const answers =
    recorded === undefined
      ? undefined
      : await (await import('./recorded-answers.ts')).startRecordedAnswers(owner)
  const key = values['key-file']
  const dataDirectory = join(folder, 'database')
  mkdirSync(dataDirectory, { mode: 0o700 })
  const stage = await openStage(owner, {
    database: { url: undefined, dataDirectory },
    folder: values.output === undefined ? folder : resolve(values.output),
    endpoint: answers?.endpoint ?? {
      url: (values['model-url'] ?? '').replace(/\/$/, ''),
      key: key === undefined ? undefined : readFileSync(key, 'utf8').trim(),
    },
    model: values.model,
    maxTurns: Number(values['max-turns']),
    prices: values.prices,
    log: (text) => process.stderr.write(text),
  })
  say(row(HEAD))
  say(row(HEAD.map(() => '---')))
  let passed = 0
  for (const incident of chosen) {
    answers?.give(recorded === 'bad' ? incident.bad : incident.good, stage.page)
    if (await playOne(stage, incident)) passed++
  }
  say(`\n${passed} of ${chosen.length} passed`)
  return passed === chosen.length ? 0 : 1
}

/** Plays an incident and prints its row; gives whether the answer was good. */
async function playOne(stage: Stage, incident: NamedIncident) {
  const played = await stage.play(incident)
  const wrong = judge(incident, played)
  say(row([incident.name, wrong.length === 0 ? 'yes' : 'no', wrong.join('; '), ...spent(played)]))
  return wrong.length === 0
}

function spent({ turns, tokens, cost, seconds }: Played) {
  const dollars = cost === null ? 'unknown' : `$${cost.toFixed(4)}`
  return [String(turns), tokens.toLocaleString('en'), dollars, seconds.toFixed(1)]
}

/** A row of a Markdown table. */
function row(cells: readonly string[]) {
  return `| ${cells.map((cell) => cell.replaceAll(/\s*\|\s*|\s+/g, ' ')).join(' | ')} |`
}

function refuse(problem: string) {
  process.stderr.write(`${problem}\n`)
  return 2
}

function say(line: string) {
  process.stdout.write(`${line}\n`)
}
