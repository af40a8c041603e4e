import { check, type Diagnostics, type Parameters } from 'recheck'
import { t } from 'tap'
import { ROOT, extent } from '../helpers/program.ts'
import { builtBy, expressionsIn } from './regular-expressions.ts'
import { productFiles } from './source-tree.ts'

// What comes from outside is read in time that grows with its length and no faster: one thread
// serves all. A backtracking regular expression may take quadratic time or worse.

/** Expressions that take more than linear time, and the bound on their input that a test holds. */
const BOUNDED: Record<string, string> = {}

/** Files that build expressions later than at their start, and of what. */
const BUILT_LATER: Record<string, string> = {
  'services/ops/redact.ts': 'configured secrets, escaped, as alternatives',
}

/** Importing them would run them. */
const PROGRAMS = [
  'server.ts',
  'db/embedded/worker.ts',
  'db/embedded/create.ts',
  'kernel/processes/watchdog-worker.ts',
]

/**
 * The checker tries attacks where a proof takes too long: a minute for all. That is for the long run,
 * and the quick one leaves out what is not proved soon. No figure of the test: bounds for one expression.
 */
const { options, accepted } = extent<Extent>({
  short: { options: { checker: 'automaton', timeout: 1_000 }, accepted: ['safe', 'unknown'] },
  long: { options: { timeout: 300_000 }, accepted: ['safe'] },
})

type Extent = { options: Parameters; accepted: readonly string[] }

const paths = productFiles(ROOT).map(({ path }) => path)
const inProduct = expressionsIn(ROOT, 'tsconfig.json', (path) => paths.includes(path))
const inBrowser = expressionsIn(ROOT, 'test/house/assets.json', (path) => path.endsWith('.js'))
const built = builtBy(
  ROOT,
  paths.filter((path) => !PROGRAMS.includes(path)),
)

t.test('every expression of the product is found', async (t) => {
  t.ok(inProduct.literals.length > 200, 'literals of the server')
  t.ok(inBrowser.literals.length > 0, 'literals of the pages')
  const places = new Set(built.map(({ path, line }) => `${path}:${line}`))
  const later = inProduct.constructions.filter(({ path, line }) => !places.has(`${path}:${line}`))
  t.same([...new Set(later.map(({ path }) => path))], Object.keys(BUILT_LATER))
})

t.test('every expression takes linear time, or has a bounded input', async (t) => {
  const all = [...inProduct.literals, ...inBrowser.literals, ...built]
  const found: string[] = []
  for (const [text, uses] of Map.groupBy(all, ({ source, flags }) => `/${source}/${flags}`)) {
    const [{ source, flags } = { source: '', flags: '' }] = uses
    const result = await check(source, flags, options)
    const places = new Set(uses.map(({ path }) => path))
    if (result.status === 'safe' || accepted.includes(result.status)) continue
    for (const path of places) found.push(`${path} ${text}`)
    if (!(text in BOUNDED)) t.comment(text, reasonOf(result))
  }
  t.same(found.toSorted(), Object.keys(BOUNDED).toSorted())
})

/** How the checker would hold the thread. */
function reasonOf(result: Exclude<Diagnostics, { status: 'safe' }>) {
  if (result.status === 'unknown') return result.error.kind
  return `${result.complexity.summary}: ${result.attack.pattern}`
}
