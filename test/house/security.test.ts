import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'
import { anchorsOf } from './anchors.ts'

const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
const manual = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')

t.test('every file that the page on security names is there', async (t) => {
  const named = [...page.matchAll(/`((?:[a-z]+\/[\w./-]+)|server\.ts)`/g)].map(([, path]) => path)
  const paths = new Set(named.filter((path) => path !== undefined))
  t.ok(paths.size > 60, 'the tables were found')
  for (const path of paths) t.ok(existsSync(join(ROOT, path)), path)
})

t.test('each guard names code of the product and a test', async (t) => {
  const [, ...tables] = page.split('| guard | stops | code | test |\n')
  t.ok(tables.length > 1, 'the tables were found')
  for (const table of tables) {
    const [rows = ''] = table.split('\n\n')
    for (const row of rows.split('\n').slice(1)) {
      const [guard, stops, code = '', test = ''] = row.slice(2, -2).split(' | ')
      t.ok(guard && stops, row)
      t.notMatch(code, /`test\//, `${guard}: code`)
      t.match(code, /`[a-z]+\/[\w./-]+`/, `${guard}: code`)
      t.match(test, /^(`test\/[\w./-]+\.test\.ts`(, )?)+$/, `${guard}: test`)
    }
  }
})

t.test('its links lead somewhere', async (t) => {
  const heads = anchorsOf(manual)
  const links = [...page.matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)]
  t.ok(links.length > 0)
  for (const [, file = '', head] of links) {
    t.ok(existsSync(join(ROOT, 'docs', file)), file)
    if (file === 'operations.md' && head !== undefined) t.ok(heads.includes(head), head)
  }
})
