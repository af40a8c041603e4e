import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'
import { cycles, importViolations } from './layers.ts'
import {
  matches,
  productFiles,
  textFiles,
  type SourceFile,
  type Violation,
} from './source-tree.ts'

const MAX_LINES = 400
const files = productFiles(ROOT)
const texts = textFiles(ROOT)

/** Reports each violation by its place, so that the one who broke the rule finds it. */
function house(name: string, violations: readonly Violation[]): void {
  t.test(name, async (t) => {
    for (const { path, line, rule } of violations) t.fail(`${path}:${line} ${rule}`)
    t.equal(violations.length, 0, name)
  })
}

function outside(allowed: readonly string[]): readonly SourceFile[] {
  return files.filter(({ path }) => !allowed.some((place) => path.startsWith(place)))
}

function dependencies(): readonly string[] {
  const manifest: Record<string, Record<string, string> | undefined> = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
  return Object.keys({ ...manifest['dependencies'], ...manifest['optionalDependencies'] })
}

house('imports go down only', importViolations(files, dependencies()))
house('imports make no circle', cycles(files))
house(
  'process. stays where processes are',
  matches(
    outside([
      ...['server.ts', 'commands/', 'kernel/config.ts', 'kernel/processes/'],
      // A program of its own.
      'db/embedded/create.ts',
    ]),
    /(?<![\w.'"-])process\s*\.|(from|import\(|require\()\s*['"](node:)?process['"]/,
    'process. is for server.ts, commands/, kernel/config.ts and kernel/processes/',
  ),
)
house(
  'kernel/ knows no service',
  matches(
    files.filter(({ path }) => path.startsWith('kernel/')),
    /\b(HOOKS|LINKS|OPS|EVENT)_|['"`](hooks|links|ops)\b|gatehouse (?!help\b)[a-z]/,
    'kernel/ names no service, none of its variables and none of its commands',
  ),
)
house(
  'SQL text runs in one place',
  matches(outside(['db/client.ts']), /\bunsafe\s*\(/, 'unsafe( is for db/client.ts'),
)
house('nothing is exported by default', [
  ...matches(files, /^export\s+default\b|^export\s*\{[^}]*\bas default\b/, 'no default exports'),
])
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
  `files have at most ${MAX_LINES} lines`,
  files
    .filter(({ lines }) => lines.length > MAX_LINES)
    .map(({ path, lines }) => ({
      path,
      line: lines.length,
      rule: `${lines.length} lines, ${MAX_LINES} at most: split it`,
    })),
)
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
