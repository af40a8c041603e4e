import { readFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'
import { anchorsOf } from './anchors.ts'
import { logCalls } from './log-calls.ts'
import { productFiles } from './source-tree.ts'

const manual = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')

/** Rows of the manual's tables by the head of the table, cells without the outer bars. */
function rowsUnder(head: string): readonly (readonly string[])[] {
  const [, table = ''] = manual.split(`${head}\n`)
  const [rows = ''] = table.split('\n\n')
  const lines = rows.split('\n').slice(1)
  return lines.map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
}

t.test('the manual has every line of the log with its fields, and no other', async (t) => {
  const rows = rowsUnder('| from | level | message | fields | meaning, and what to do |')
  const documented = rows.flatMap(([from, levels = '', message = '', fields = '']) =>
    levels.split(', ').map((level) => {
      const names = [...fields.matchAll(/`([^`]+)`/g)].map((match) => match[1])
      return `${from} ${level} ${message.replaceAll('`', '')} {${names.join(', ')}}`
    }),
  )
  t.ok(documented.length > 30, 'the table was found')
  const called = logCalls(
    ROOT,
    productFiles(ROOT).map(({ path }) => path),
  )
  const known = new Set(documented)
  for (const { place, from, level, message, fields } of called) {
    const line = `${from} ${level} ${message} {${fields.join(', ')}}`
    t.ok(known.delete(line) || documented.includes(line), `${place}: ${line}`)
  }
  t.same([...known], [], 'lines that nobody writes')
})

t.test('links within the manual lead somewhere', async (t) => {
  const heads = anchorsOf(manual)
  for (const [, target = ''] of manual.matchAll(/\]\(#([^)]*)\)/g)) {
    t.ok(heads.includes(target), `#${target}`)
  }
})

const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')

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
