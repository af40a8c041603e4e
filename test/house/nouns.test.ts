import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'
import { rowsUnder } from './markdown.ts'

const SERVICES = ['Hooks', 'Links', 'Ops']
const FLOORS = ['sql', 'db', 'services', 'routes', 'html']
const HEAD = '| wing | noun | what it does | sql | db | services | routes | html |'
const ROOMS = '| room | what it has |'
const architecture = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')

/** What stands in a folder: a file or a folder for each name; nothing where there is no such folder. */
function namesIn(folder: string) {
  const path = join(ROOT, folder)
  if (!existsSync(path)) return []
  return readdirSync(path).map((name) => name.replace(/\..*$/, ''))
}

/** `event` for `events`, `memory` for `memories`. */
function oneOf(noun: string) {
  return noun.replace(/ies$/, 'y').replace(/s$/, '')
}

const rooms = rowsUnder(architecture, ROOMS).map(([room = '']) => room)

for (const title of SERVICES) {
  const service = title.toLowerCase()
  const [, below = ''] = architecture.split(`\n## ${title}\n`)
  const [section = ''] = below.split('\n## ')
  const rows = rowsUnder(section, HEAD)
  const wings = [...new Set(rows.map(([wing = '']) => wing))]

  t.test(`the table of the nouns of ${service} is what stands on the floors`, async (t) => {
    t.ok(wings.length > 2 && wings.length < 6, 'it has three to five wings')
    for (const wing of wings) {
      const onFloors = FLOORS.map((floor) => namesIn(`${floor}/${service}/${wing}`))
      const known = rows.filter(([its]) => its === wing).map(([, noun = '']) => noun)
      for (const [its, noun = '', , ...marks] of rows) {
        if (its !== wing) continue
        const found = onFloors.map((names) => (names.includes(noun) ? '●' : ''))
        t.same(marks, found, `${wing}/${noun}`)
      }
      const others = onFloors.flat().filter((name) => !known.includes(name))
      t.same(others, [], `names in ${wing} that are no noun of it`)
    }
  })

  t.test(`beside the wings of ${service} stand rooms alone`, async (t) => {
    const names = FLOORS.flatMap((floor) => namesIn(`${floor}/${service}`))
    t.same(
      names.filter((name) => !wings.includes(name) && !rooms.includes(name)),
      [],
    )
  })

  t.test(`a noun of ${service} has no second name`, async (t) => {
    const nouns = rows.map(([, noun = '']) => noun)
    const names = wings.flatMap((wing) =>
      FLOORS.flatMap((floor) => namesIn(`${floor}/${service}/${wing}`)),
    )
    const seconds = names.filter((name) =>
      nouns.some((noun) => {
        const one = oneOf(noun)
        return name !== noun && (name === one || name.startsWith(`${one}-`))
      }),
    )
    t.same(seconds, [], 'its parts belong into a folder of its name')
  })
}
