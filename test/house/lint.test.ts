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

/** A file, what it imports, and the linter's line; undefined where it has none. */
const IMPORTS: readonly (readonly [string, string, string?])[] = [
  ['kernel/down.ts', 'node:fs/promises'],
  ['kernel/http/down.ts', '../html.ts'],
  ['kernel/up.ts', '../db/client.ts', DOWN],
  ['kernel/http/up.ts', '../../services/audit.ts', DOWN],
  ['db/transfer/down.ts', '../server.ts'],
  ['db/up.ts', '../services/audit.ts', DOWN],
  ['db/hooks/up.ts', '../../html/parts.ts', DOWN],
  ['services/links/down.ts', '../../db/links/links.ts'],
  ['services/links/transfer/transfer/transfer/down.ts', '../links.ts'],
  ['services/up.ts', '../html/parts.ts', DOWN],
  ['services/ops/up.ts', '../../routes/ops/routes.ts', DOWN],
  ['services/hooks/agents/queues/up.ts', '../../../html/parts.ts', DOWN],
  ['html/down.ts', '../kernel/html.ts'],
  ['html/up.ts', '../routes/audit.ts', DOWN],
  ['html/values.ts', '../kernel/log.ts', TYPES],
  ['html/ops/values.ts', '../../db/ops/events.ts', TYPES],
  ['routes/hooks/down.ts', '../../html/hooks/log.ts'],
  ['routes/up.ts', '../commands/serve.ts', DOWN],
  ['routes/hooks/up.ts', '../../commands/serve.ts', DOWN],
  ['commands/down.ts', '../routes/links/routes.ts'],
  ['commands/up.ts', '../test/helpers/server.ts', DOWN],
  ['commands/hooks/down.ts', '../house/secrets.ts'],
  ['commands/house/init/down.ts', '../../frame/output.ts'],
  ['commands/frame/up.ts', '../house/serve.ts', WING],
  ['commands/house/init/up.ts', '../../hooks/events.ts', WING],
  ['commands/ops/beside.ts', '../links/users.ts', WING],
  ['services/hooks/agents/down.ts', '../receive/providers.ts'],
  ['services/hooks/receive/root.ts', '../registry.ts'],
  ['services/hooks/receive/up.ts', '../log/events/filter.ts', WING],
  ['services/hooks/receive/schemes/up.ts', '../../send/replays/replays.ts', WING],
  ['services/hooks/agents/queues/wing.ts', '../../log/stream.ts'],
  ['routes/hooks/log/up.ts', '../../../services/hooks/send/replays/replays.ts', WING],
  ['db/ops/watch/up.ts', '../alerts/alerts.ts', WING],
  ['html/links/names/up.ts', '../visits/stats/stats.ts', WING],
  ['services/links/visits/visits/own.ts', './visits/clicks.ts'],
  ['services/links/names/links/qr.ts', '../../visits/stats.ts', WING],
  ['services/hooks/aside.ts', '../links/links.ts', ASIDE],
  ['services/hooks/agents/queues/aside.ts', '../../ops/events.ts', ASIDE],
  ['routes/links/aside.ts', '../../db/ops/events.ts', ASIDE],
  ['html/ops/aside.ts', '../hooks/log.ts', ASIDE],
  ['db/links/aside.ts', '../hooks/events.ts', ASIDE],
  ['kernel/http/websocket.ts', 'ws'],
  ['kernel/package.ts', 'ws', PACKAGE],
  ['kernel/http/client.ts', 'node:http', 'see kernel/http/node-http.ts'],
  ['db/links/package.ts', 'postgres'],
  ['services/ops/package.ts', 'postgres', PACKAGE],
  ['db/embedded/package.ts', '@electric-sql/pglite/nodefs'],
  ['db/hooks/package.ts', '@electric-sql/pglite', PACKAGE],
  ['services/hooks/agents/queues/package.ts', '@redis/client'],
  ['services/hooks/package.ts', '@redis/client', PACKAGE],
  ['kernel/validate.ts', 'typebox/schema'],
  ['db/hooks/types.ts', 'typebox', PACKAGE],
  ['commands/package.ts', 'yaml', PACKAGE],
  ['server.ts', 'left-pad/x.js', PACKAGE],
  ['routes/package.ts', 'node:process', PACKAGE],
]

/** Other files, and the rule that each breaks. */
const OTHERS: readonly (readonly [string, string, string?])[] = [
  ['html/ops/types.ts', "export type { E } from '../../db/ops/events.ts'"],
  [
    'html/ops/aside-types.ts',
    "export type { E } from '../../db/links/names/links.ts'",
    IMPORT_RULE,
  ],
  ['kernel/circle.ts', "export { b as a } from './back.ts'", 'import(no-cycle)'],
  ['kernel/back.ts', "export { a as b } from './circle.ts'", 'import(no-cycle)'],
  ['kernel/default.ts', 'const a = 1\nexport { a as default }', 'import(no-default-export)'],
  ['kernel/400.ts', '\n'.repeat(400)],
  ['kernel/401.ts', '\n'.repeat(401), 'eslint(max-lines)'],
  ['routes/ends.ts', 'process.exit()', 'eslint(no-restricted-globals)'],
  ['commands/ends.ts', 'process.exit()'],
  ['db/unsafe.ts', "sql.unsafe('')", 'eslint(no-restricted-properties)'],
  ['db/client.ts', "sql.unsafe('')"],
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
    t.same(lines, line === undefined ? [] : [line, line], `${path} imports ${module}`)
  }
  for (const [path, , rule] of OTHERS) {
    const rules = found(path).map(({ code }) => code)
    t.same(rules, rule === undefined ? [] : [rule], path)
  }
})
