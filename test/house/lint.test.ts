import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { t } from 'tap'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'

type Problem = { filename: string; code: string; help: string }

/** What the linter finds in a folder. */
function lint(folder: string): readonly Problem[] {
  const linter = join(ROOT, 'node_modules/oxlint/bin/oxlint')
  const { stdout } = spawnSync(process.execPath, [linter, '--format', 'json'], {
    cwd: folder,
    encoding: 'utf8',
  })
  return JSON.parse(stdout).diagnostics
}

t.test('the linter finds nothing', async (t) => {
  t.same(lint(ROOT), [])
})

const IMPORT_RULE = 'eslint(no-restricted-imports)'
const DOWN = 'imports go down only'
const ASIDE = 'no service imports another'
const WING = 'a wing imports those below'
const TYPES = 'html/ imports kernel/html.ts, and types'
const PACKAGE = 'a package is imported in one place: see oxlint.config.ts'

/** A file, what it imports, and the linter's line. That it allows what is right, our own sources show. */
const IMPORTS: readonly (readonly [path: string, module: string, line: string])[] = [
  ['kernel/http/up.ts', '../../services/audit.ts', DOWN],
  ['db/up.ts', '../services/audit.ts', DOWN],
  ['db/hooks/up.ts', '../../html/parts.ts', DOWN],
  ['services/up.ts', '../html/parts.ts', DOWN],
  ['services/hooks/agents/queues/up.ts', '../../../html/parts.ts', DOWN],
  ['html/up.ts', '../routes/audit.ts', DOWN],
  ['html/values.ts', '../kernel/log.ts', TYPES],
  ['html/ops/values.ts', '../../db/ops/events.ts', TYPES],
  ['routes/up.ts', '../commands/serve.ts', DOWN],
  ['commands/up.ts', '../test/helpers/server.ts', DOWN],
  ['commands/frame/up.ts', '../house/serve.ts', WING],
  ['commands/house/init/up.ts', '../../hooks/events.ts', WING],
  ['commands/ops/beside.ts', '../links/users.ts', WING],
  ['services/hooks/receive/up.ts', '../log/events/filter.ts', WING],
  ['db/ops/watch/up.ts', '../alerts/alerts.ts', WING],
  ['html/links/names/up.ts', '../visits/stats/stats.ts', WING],
  ['services/links/names/links/qr.ts', '../../visits/stats.ts', WING],
  ['services/hooks/aside.ts', '../links/links.ts', ASIDE],
  ['services/hooks/agents/queues/aside.ts', '../../ops/events.ts', ASIDE],
  ['routes/links/aside.ts', '../../db/ops/events.ts', ASIDE],
  ['html/ops/aside.ts', '../hooks/log.ts', ASIDE],
  ['kernel/package.ts', 'ws', PACKAGE],
  ['kernel/http/client.ts', 'node:http', 'see kernel/http/node-http.ts'],
  ['services/ops/package.ts', 'postgres', PACKAGE],
  ['db/hooks/package.ts', '@electric-sql/pglite', PACKAGE],
  ['services/hooks/package.ts', '@redis/client', PACKAGE],
  ['db/hooks/types.ts', 'typebox', PACKAGE],
  ['commands/package.ts', 'yaml', PACKAGE],
  ['server.ts', 'left-pad/x.js', PACKAGE],
  ['routes/package.ts', 'node:process', PACKAGE],
]

/** Other files, and the rule that each breaks. */
const OTHERS: readonly (readonly [path: string, text: string, rule: string])[] = [
  [
    'html/ops/aside-types.ts',
    "export type { E } from '../../db/links/names/links.ts'",
    IMPORT_RULE,
  ],
  ['kernel/circle.ts', "export { b as a } from './back.ts'", 'import(no-cycle)'],
  ['kernel/back.ts', "export { a as b } from './circle.ts'", 'import(no-cycle)'],
  ['kernel/default.ts', 'const a = 1\nexport { a as default }', 'import(no-default-export)'],
  ['kernel/401.ts', '\n'.repeat(401), 'eslint(max-lines)'],
  ['routes/ends.ts', 'process.exit()', 'eslint(no-restricted-globals)'],
  ['db/unsafe.ts', "sql.unsafe('')", 'eslint(no-restricted-properties)'],
]

t.test('each rule of the house is one of the linter', async (t) => {
  const folder = await temporaryFolder(t, 'house')
  copyFileSync(join(ROOT, 'oxlint.config.ts'), join(folder, 'oxlint.config.ts'))
  function plant(path: string, text: string) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (const [path, module] of IMPORTS) {
    plant(path, `export { x } from '${module}'\nawait import('${module}')\n`)
  }
  for (const [path, text] of OTHERS) plant(path, text)

  const problems = lint(folder)
  const found = (path: string) => problems.filter(({ filename }) => filename === path)
  for (const [path, module, line] of IMPORTS) {
    const lines = found(path).map(({ help }) => help)
    t.same(lines, [line, line], `${path} imports ${module}`)
  }
  for (const [path, , rule] of OTHERS) {
    const rules = found(path).map(({ code }) => code)
    t.same(rules, [rule], path)
  }
})
