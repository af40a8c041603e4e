import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'

const SERVICES = ['Hooks', 'Links', 'Ops']
const FLOORS = ['sql', 'db', 'services', 'routes', 'html']
const HEAD = '| noun | what it does | sql | db | services | routes | html |'
const ROOMS = '| room | what it has |'
const architecture = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')

/** The rows of the first table with this head, cells without the outer bars. */
function rowsUnder(text: string, head: string): readonly (readonly string[])[] {
  const [, table = ''] = text.split(`${head}\n`)
  const [rows = ''] = table.split('\n\n')
  const lines = rows.trim().split('\n').slice(1)
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** What stands on a floor of a service: a file or a folder for each name. */
function namesOn(floor: string, service: string): readonly string[] {
  return readdirSync(join(ROOT, floor, service)).map((name) => name.replace(/\..*$/, ''))
}

/** `event` for `events`, `memory` for `memories`. */
function oneOf(noun: string): string {
  return noun.replace(/ies$/, 'y').replace(/s$/, '')
}

const rooms = rowsUnder(architecture, ROOMS).map(([room = '']) => room)

for (const title of SERVICES) {
  const service = title.toLowerCase()
  const onFloors = FLOORS.map((floor) => new Set(namesOn(floor, service)))
  const [, section = ''] = architecture.split(`\n## ${title}\n`)
  const rows = rowsUnder(section, HEAD)
  const nouns = rows.map(([noun = '']) => noun)

  t.test(`the table of the nouns of ${service} is what stands on the floors`, async (t) => {
    t.ok(rows.length > 5, 'the table was found')
    for (const [noun = '', , ...marks] of rows) {
      const found = onFloors.map((names) => (names.has(noun) ? '●' : ''))
      t.same(marks, found, noun)
    }
    const known = new Set([...nouns, ...rooms])
    const others = onFloors.flatMap((names) => [...names].filter((name) => !known.has(name)))
    t.same(others, [], 'names that are neither a noun nor a room')
  })

  t.test(`a noun of ${service} has no second name`, async (t) => {
    const seconds = onFloors.flatMap((names) =>
      [...names].filter((name) =>
        nouns.some((noun) => {
          const one = oneOf(noun)
          return name !== noun && (name === one || name.startsWith(`${one}-`))
        }),
      ),
    )
    t.same(seconds, [], 'its parts belong into a folder of its name')
  })
}
