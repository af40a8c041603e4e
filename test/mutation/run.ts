import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT, SHORT_LIVES } from '../helpers/program.ts'
import { runFile } from '../runner/pool.ts'
import { withSharedParts } from '../runner/shared-parts.ts'
import { FAULTS, type PlantedFault } from './faults.ts'

// How well the suite protects: docs/testing.md.
//   node test/mutation/run.ts reach FILE.json
//     notes which test files run the place of each fault, by coverage
//   node test/mutation/run.ts faults FILE.json [FROM [TO]]
//     puts each fault, or those with these numbers, into the sources and runs those files until one fails; the
//     sources are as before when it has ended

const FILE_SECONDS = 600
const JOBS = availableParallelism() + 1

/** Test files with their milliseconds, by the name of a fault. */
type Reach = Record<string, Record<string, number>>

const [mode, file = 'reach.json', from = '1', to = FAULTS.length] = process.argv.slice(2)
const never = new AbortController().signal
// Leaves by way of the exit handlers, which put the sources back.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
process.env[SHORT_LIVES] = '1'

const misfits = FAULTS.flatMap(misfitsOf)
if (misfits.length > 0) {
  throw new Error(`test/mutation/faults.ts does not fit the sources:\n${misfits.join('\n')}`)
}

await withSharedParts({ browser: true }, async () => {
  if (mode === 'reach') await findReach()
  else if (mode === 'faults') await tryFaults()
  else throw new Error("expected 'reach' or 'faults'")
})

async function findReach(): Promise<void> {
  const reach: Reach = Object.fromEntries(FAULTS.map(({ fault }) => [fault, {}]))
  const places = FAULTS.map(placeOf)
  const files = globSync('test/**/*.test.ts', { cwd: ROOT }).sort()
  const waiting = files.filter((name) => !name.startsWith('test/long/'))
  async function work(): Promise<void> {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const folder = mkdtempSync(join(tmpdir(), 'gatehouse-coverage-'))
      const env = { NODE_V8_COVERAGE: folder }
      const { failed, milliseconds } = await runFile(name, FILE_SECONDS, never, env)
      const reached = reachedIn(folder, places)
      rmSync(folder, { recursive: true })
      say(`${failed === 0 ? 'ok' : 'not ok'} ${name}: runs the places of ${reached.size} faults`)
      for (const { fault } of reached) {
        reach[fault] = { ...reach[fault], [name]: Math.round(milliseconds) }
      }
    }
  }
  await Promise.all(Array.from({ length: JOBS }, work))
  writeFileSync(file, JSON.stringify(reach, null, 1))
}

/** What of a planted fault is not in the sources, or is there more than once; a line each. */
function misfitsOf({ fault, file: path, find, runBy }: PlantedFault): readonly string[] {
  const [runner = '', name] = runBy?.split('#') ?? []
  const wanted = [[path, find] as const]
  if (runBy !== undefined) wanted.push([runner, `function ${name}(`])
  return wanted.flatMap(([place, text]) => {
    const count = globSync(place, { cwd: ROOT }).length && textOf(place).split(text).length - 1
    return count === 1 ? [] : [`'${fault}': ${place} has ${count} times ${JSON.stringify(text)}`]
  })
}

function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** A place in a source file, as coverage has it. */
type Place = { readonly of: PlantedFault; readonly url: string; readonly at: number }

function placeOf(of: PlantedFault): Place {
  const [path = '', name] = (of.runBy ?? of.file).split('#')
  const text = textOf(path)
  const at = of.runBy === undefined ? text.indexOf(of.find) : text.indexOf(`function ${name}(`)
  // Behind the first brace of a function: its own name counts as run when the file is loaded.
  const inside = of.runBy === undefined ? at : text.indexOf('{\n', at) + 2
  return { of, url: pathToFileURL(join(ROOT, path)).href, at: inside }
}

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number }
type Coverage = {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly { readonly ranges: readonly Range[] }[]
  }[]
}

/** What a process has left; nothing of one that was killed while it wrote. */
function coverageIn(path: string): Coverage {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return { result: [] }
  }
}

/** The faults whose place was run by one of the processes that left their coverage in a folder. */
function reachedIn(folder: string, places: readonly Place[]): ReadonlySet<PlantedFault> {
  const reached = new Set<PlantedFault>()
  for (const name of readdirSync(folder)) {
    const { result } = coverageIn(join(folder, name))
    const scripts = Map.groupBy(result, ({ url }) => url)
    for (const { of, url, at } of places) {
      for (const { functions } of scripts.get(url) ?? []) {
        const around = functions
          .flatMap(({ ranges }) => ranges)
          .filter(({ startOffset, endOffset }) => startOffset <= at && at < endOffset)
          .toSorted((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset))
        if ((around[0]?.count ?? 0) > 0) reached.add(of)
      }
    }
  }
  return reached
}

async function tryFaults(): Promise<void> {
  const reach: Reach = JSON.parse(readFileSync(file, 'utf8'))
  let caught = 0
  for (const [at, fault] of FAULTS.entries()) {
    if (at + 1 < Number(from) || at + 1 > Number(to)) continue
    const files = likelyFirst(fault, reach[fault.fault] ?? {})
    const by = await firstFailure(fault, files)
    if (by !== undefined) caught++
    say(
      `${at + 1} ${by === undefined ? 'MISSED' : 'caught'}: ${fault.fault} (${by ?? files.length})`,
    )
  }
  say(`${caught} caught`)
}

/** Tests of the fault's own service or floor first, and of these the quick ones. */
function likelyFirst(
  fault: PlantedFault,
  reached: Readonly<Record<string, number>>,
): readonly string[] {
  const names = (fault.runBy ?? fault.file).split('/')
  const own = names.slice(0, 2).map((name) => `test/${name}/`)
  const isOther = (file: string): number => Number(!own.some((folder) => file.startsWith(folder)))
  return Object.keys(reached).toSorted(
    (a, b) => isOther(a) - isOther(b) || (reached[a] ?? 0) - (reached[b] ?? 0),
  )
}

/** Runs the files with the fault in the sources, several at a time, until one fails. */
async function firstFailure(
  fault: PlantedFault,
  files: readonly string[],
): Promise<string | undefined> {
  const path = join(ROOT, fault.file)
  const before = readFileSync(path, 'utf8')
  const found = new AbortController()
  const waiting = [...files]
  let by: string | undefined
  async function work(): Promise<void> {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const { failed } = await runFile(name, FILE_SECONDS, found.signal)
      if (found.signal.aborted) return
      if (failed === 0) continue
      by = name
      found.abort()
    }
  }
  const restore = (): void => writeFileSync(path, before)
  process.once('exit', restore)
  writeFileSync(
    path,
    before.replace(fault.find, () => fault.replace),
  )
  try {
    await Promise.all(Array.from({ length: JOBS }, work))
  } finally {
    restore()
    process.off('exit', restore)
  }
  return by
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
