import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'
import { codeOf, matches, productFiles, textFiles, type Violation } from './source-tree.ts'

// What the linter has no rule for. oxlint.config.ts has the others.

const files = productFiles(ROOT)
const texts = textFiles(ROOT)

/** Reports each violation by its place, so that the one who broke the rule finds it. */
function house(name: string, violations: readonly Violation[]): void {
  t.test(name, async (t) => {
    for (const { path, line, rule } of violations) t.fail(`${path}:${line} ${rule}`)
    t.equal(violations.length, 0, name)
  })
}

house(
  'kernel/ knows no service',
  matches(
    files.filter(({ path }) => path.startsWith('kernel/')),
    /\b(HOOKS|LINKS|OPS|EVENT)_|['"`](hooks|links|ops)\b|gatehouse (?!help\b)[a-z]/,
    'kernel/ names no service, none of its variables and none of its commands',
  ),
)
house(
  'nothing is re-exported',
  files.flatMap(({ path, lines }) => {
    const text = lines.join('\n')
    return [...text.matchAll(/^export\s+(type\s+)?(\*[^;'"]*|\{[^}]*\})\s*from\s/gm)].map(
      (match) => ({
        path,
        line: text.slice(0, match.index).split('\n').length,
        rule: 'no re-exports: import from the file itself',
      }),
    )
  }),
)
house('files have names that say what they export', [
  ...files
    .filter(
      ({ path }) => !/^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/.test(path),
    )
    .map(({ path }) => ({ path, line: 1, rule: 'names are kebab-case' })),
  ...files
    .filter(({ path }) => path.endsWith('/index.ts'))
    .map(({ path }) => ({
      path,
      line: 1,
      rule: 'no index.ts: name the file for what it exports',
    })),
])
house(
  'pages carry no script or style of their own',
  matches(
    files.filter(({ path }) => path.startsWith('html/')),
    /<script(?![^>]*\ssrc=)[\s>]|<style[\s>]|\sstyle=["'$]|\son[a-z]+=["'$]/,
    'no inline script or style: it belongs to html/assets/',
  ),
)
// Put together, so that these lines do not break their own rules.
const unfinished = new RegExp(`\\b(${['TO', 'FIX'].join('DO|')}ME)\\b`)
house(
  'nothing is left to do',
  [...files, ...texts.filter(({ path }) => /^sql\//.test(path))].flatMap(({ path, lines }) =>
    lines.flatMap((text, at) =>
      unfinished.test(text) ? [{ path, line: at + 1, rule: 'nothing is left unfinished' }] : [],
    ),
  ),
)
house(
  'nothing points outside the repository',
  texts.flatMap(({ path, lines }) =>
    lines.flatMap((text, at) =>
      text.includes(['..', 'shared'].join('/'))
        ? [{ path, line: at + 1, rule: 'names a folder outside the repository' }]
        : [],
    ),
  ),
)

t.test('comments break no rule', async (t) => {
  t.equal(codeOf('  // process.exit()'), '')
  t.equal(codeOf('const a = 1 // process.exit()'), 'const a = 1')
  t.same(matches([{ path: 'a.ts', lines: [' * unsafe(x)', 'y'] }], /unsafe\(/, 'rule'), [])
  t.match(matches([{ path: 'a.ts', lines: ['', 'sql.unsafe(x)'] }], /unsafe\(/, 'rule'), [
    { line: 2 },
  ])
})
