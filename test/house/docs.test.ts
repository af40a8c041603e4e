import { readFileSync, existsSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { t } from 'tap'
import { flagOf, variableOf, VARIABLE_NAMES } from '../../commands/frame/configuration.ts'
import { ROOT } from '../helpers/program.ts'
import { logCalls } from './log-calls.ts'
import { anchorsOf, rowsUnder } from './markdown.ts'
import { productFiles } from './source-tree.ts'

const PAGES = globSync(
  ['*.md', 'docs/**/*.md', 'bench/*.md', 'integrations/**/*.md', 'test/**/*.md'],
  { cwd: ROOT },
)

function read(path: string) {
  return readFileSync(join(ROOT, path), 'utf8')
}

t.test('the page on the log has every line with its fields, and no other', async (t) => {
  const head = '| from | level | message | fields | meaning, and what to do |'
  const rows = rowsUnder(read('docs/logs.md'), head)
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
    // The page says what all of these mean: something works again.
    const saysAgain = level === 'info' && message.endsWith(' again')
    t.ok(known.delete(line) || documented.includes(line) || saysAgain, `${place}: ${line}`)
  }
  t.same([...known], [], 'lines that nobody writes')
})

t.test('the page on settings has every variable as the program declares it', async (t) => {
  const head = '| variable | flag | default | accepted | counts | what it sets |'
  const rows = rowsUnder(read('docs/settings.md'), head)
  const code = (text: string | undefined) => (text === undefined ? '' : `\`${text}\``)
  const declared = VARIABLE_NAMES.map((name) => {
    const { default: fallback, form, counts } = variableOf(name)
    const flag = flagOf(name)
    const shownFlag = flag === undefined ? 'none' : code(`--${flag}`)
    return [code(name), shownFlag, code(fallback), form, counts].join(' | ')
  })
  const documented = rows.map((cells) => cells.slice(0, -1).join(' | '))
  t.same(documented.toSorted(), declared.toSorted())
  for (const cells of rows) t.ok(cells.at(-1), `${cells[0]} says what it sets`)
})

t.test('links between documents lead to a file and to a head in it', async (t) => {
  let checked = 0
  for (const page of PAGES) {
    for (const [file, anchor] of linksOf(page)) {
      const target = file === '' ? page : join(dirname(page), file)
      checked++
      if (!t.ok(existsSync(join(ROOT, target)), `${page}: ${file}`)) continue
      if (anchor !== undefined) {
        t.ok(anchorsOf(read(target)).includes(anchor), `${page}: ${file}#${anchor}`)
      }
    }
  }
  t.ok(checked > 200, 'the links were found')
})

/** File and anchor of each link of a page to another document. */
function linksOf(page: string) {
  const links = read(page).matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)
  return [...links].map(([, file = '', anchor]) => [file, anchor] as const)
}

t.test('one page leads to all pages, and the first page is short', async (t) => {
  const listed = linksOf('docs/README.md').map(([file]) => join('docs', file))
  for (const path of globSync('docs/*.md', { cwd: ROOT })) {
    if (path !== 'docs/README.md') t.ok(listed.includes(path), path)
  }
  t.ok(read('README.md').split('\n').length <= 151)
})

const page = read('docs/security.md')

t.test('every file that the page on security names is there', async (t) => {
  const named = [...page.matchAll(/`((?:[a-z]+\/[\w./-]+)|server\.ts)`/g)].map(([, path]) => path)
  const paths = new Set(named.filter((path) => path !== undefined))
  t.ok(paths.size > 60, 'the tables were found')
  for (const path of paths) t.ok(existsSync(join(ROOT, path)), path)
})

t.test('each guard names code of the product and a test', async (t) => {
  const guards = rowsUnder(page, '| guard | stops | code | test |')
  t.ok(guards.length > 40, 'the tables were found')
  for (const [guard = '', stops, code, test] of guards) {
    t.ok(guard && stops, guard)
    t.notMatch(code, /`test\//, `${guard}: code`)
    t.match(code, /`(?:[a-z]+\/)?[\w./-]+\.\w+`|`[a-z]+\/[\w./-]+`/, `${guard}: code`)
    t.match(test, /^(`test\/[\w./-]+\.test\.ts`(, )?)+$/, `${guard}: test`)
  }
})
