import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'
import { inCode, inText, productFiles, textFiles, type Violation } from './source-tree.ts'

// What the linter has no rule for. oxlint.config.ts has the others.

const files = productFiles(ROOT)
const texts = textFiles(ROOT)
const sources = texts.filter(({ path }) => path.endsWith('.ts') && path !== 'oxlint.config.ts')

/** Reports each violation by its place, so that the one who broke the rule finds it. */
function house(name: string, violations: readonly Violation[]) {
  t.test(name, async (t) => {
    for (const { path, line, rule } of violations) t.fail(`${path}:${line} ${rule}`)
    t.equal(violations.length, 0, name)
  })
}

house(
  'kernel/ knows no service',
  inCode(
    files.filter(({ path }) => path.startsWith('kernel/')),
    /\b(HOOKS|LINKS|OPS|EVENT)_|['"`](hooks|links|ops)\b|gatehouse (?!help\b)[a-z]/,
    'kernel/ names no service, none of its variables and none of its commands',
  ),
)
house(
  'nothing is re-exported',
  inText(
    files,
    /^export\s+(type\s+)?(\*[^;'"]*|\{[^}]*\})\s*from\s/gm,
    'no re-exports: import from the file itself',
  ),
)
house(
  'files have names that say what they export',
  files.flatMap(({ path }) => {
    const isKebab = /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/.test(path)
    const rule = 'names are kebab-case, and say what the file exports: no index.ts'
    return isKebab && !path.endsWith('/index.ts') ? [] : [{ path, line: 1, rule }]
  }),
)
house(
  'pages carry no script or style of their own',
  inCode(
    files.filter(({ path }) => path.startsWith('html/')),
    /<script(?![^>]*\ssrc=)[\s>]|<style[\s>]|\sstyle=["'$]|\son[a-z]+=["'$]/,
    'no inline script or style: it belongs to html/assets/',
  ),
)
// A spread of an object, and of a list unless a method of it follows.
house(
  'no literal is spread into another one',
  inText(
    sources,
    /[.]{3}(?:\{|\[[^[\]]*\](?!\s*[.]))/g,
    'no literal is spread: its members stand there themselves',
  ),
)
// Put together, so that these lines do not break their own rules.
const unfinished = new RegExp(`\\b(${['TO', 'FIX'].join('DO|')}ME)\\b`, 'g')
const outside = new RegExp(['[.]{2}', 'shared'].join('/'), 'g')
house(
  'nothing is left to do',
  inText(
    [...files, ...texts.filter(({ path }) => path.startsWith('sql/'))],
    unfinished,
    'nothing is left unfinished',
  ),
)
house(
  'nothing points outside the repository',
  inText(texts, outside, 'names a folder outside the repository'),
)

t.test('the sources are found, and comments break no rule of the code', async (t) => {
  t.ok(sources.length > 800)
  const lines = ['// unsafe(x)', ' * unsafe(x)', 'a() // unsafe(x)', 'sql.unsafe(x)']
  t.match(inCode([{ path: 'a.ts', lines }], /unsafe\(/, 'rule'), [{ line: 4 }])
  t.match(inText([{ path: 'a.ts', lines }], /unsafe\(x\)\nsql/g, 'rule'), [{ line: 3 }])
})
