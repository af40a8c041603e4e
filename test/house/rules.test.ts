import { t } from 'tap'
import { createReportReader, totalsLine } from '../helpers/tap-report.ts'
import type { FileReport } from '../helpers/tap-report.ts'
import { cycles, importViolations } from './layers.ts'
import { codeOf, importsOf, matches } from './source-tree.ts'
import type { SourceFile } from './source-tree.ts'

function file(path: string, ...lines: readonly string[]): SourceFile {
  return { path, lines }
}

function broken(path: string, ...lines: readonly string[]): readonly string[] {
  const packages = ['postgres', '@electric-sql/pglite', 'typebox', 'ws']
  const found = importViolations([file(path, ...lines)], packages)
  return found.map(({ path: at, line, rule }) => `${at}:${line} ${rule}`)
}

t.test('imports that go down pass', async (t) => {
  t.same(broken('kernel/log.ts', "import { x } from 'node:fs'", "import './clock.ts'"), [])
  t.same(broken('db/client.ts', "import postgres from 'postgres'"), [])
  t.same(broken('kernel/websocket.ts', "import { WebSocket } from 'ws'"), [])
  t.same(broken('routes/hooks/log.ts', "import { a } from '../../html/hooks/log.ts'"), [])
  t.same(broken('html/hooks/log.ts', "import type { E } from '../../db/hooks/rows.ts'"), [])
  t.same(broken('commands/serve.ts', "import { a } from '../routes/links.ts'"), [])
})

t.test('imports that go up or aside are named with file and line', async (t) => {
  t.match(broken('kernel/log.ts', '', "import { x } from '../db/client.ts'"), [
    /^kernel\/log\.ts:2 kernel may not import db\/client\.ts/,
  ])
  t.match(broken('services/hooks/a.ts', "import { b } from '../links/b.ts'"), [
    /hooks may not import/,
  ])
  t.match(broken('routes/hooks.ts', "import { b } from '../db/ops.ts'"), [
    /hooks may not import ops/,
  ])
  t.match(broken('html/ops/a.ts', "import { b } from '../../db/ops.ts'"), [/html may not import/])
  t.match(broken('services/ops/a.ts', "const x = await import('../../routes/ops.ts')"), [/may not/])
  t.match(broken('kernel/ws.ts', "import { WebSocket } from 'ws'"), [/kernel may import node:/])
  t.match(broken('commands/a.ts', "import { WebSocket } from 'ws'"), [/only kernel\/websocket\.ts/])
  t.match(broken('services/ops/a.ts', "import postgres from 'postgres'"), [/only db\/ may import/])
  t.match(broken('db/a.ts', "import { PGlite } from '@electric-sql/pglite'"), [/only db\/embedded/])
  t.match(broken('db/a.ts', "import x from 'left-pad/x.js'"), [/left-pad is not a dependency/])
})

t.test('a circle of imports is shown whole', async (t) => {
  const files = [
    file('kernel/a.ts', 'import {', '  b,', "} from './b.ts'"),
    file('kernel/b.ts', "import { a } from './a.ts'"),
  ]
  t.match(cycles(files), [{ rule: /kernel\/a\.ts → kernel\/b\.ts → kernel\/a\.ts/ }])
  t.match(importsOf(files[0] ?? file('')), [{ line: 3, target: 'kernel/b.ts' }])
})

t.test('comments break no rule', async (t) => {
  t.equal(codeOf('  // process.exit()'), '')
  t.equal(codeOf('const a = 1 // process.exit()'), 'const a = 1')
  t.same(matches([file('a.ts', ' * unsafe(x)', 'y')], /unsafe\(/, 'rule'), [])
  t.match(matches([file('a.ts', '', 'sql.unsafe(x)')], /unsafe\(/, 'rule'), [{ line: 2 }])
})

t.test('the report counts sub-tests without sub-tests of their own', async (t) => {
  const { files, stray, line } = report([
    'TAP version 14',
    '# Subtest: test/a.test.ts',
    '    # Subtest: group',
    '        ok 1 - set-up',
    '        # Subtest: leaf',
    '            ok 1 - one',
    '            ok 2 - two',
    '            1..2',
    '        ok 2 - leaf # time=1ms',
    '        # Subtest: bad',
    '            not ok 1 - nope',
    '              ---',
    '              source: |',
    '                ok 1 - quoted',
    '              ...',
    '            1..1',
    '        not ok 3 - bad # time=1ms',
    '        ok 4 - later # SKIP why',
    '        1..4',
    '    not ok 1 - group # time=4ms',
    '    1..1',
    'not ok 1 - test/a.test.ts # time=70.4ms',
    '  ---',
    '  exitCode: 1',
    '  ...',
  ])
  t.equal(line, '1 passed, 1 failed, 1 skipped')
  t.match(files, [{ name: 'test/a.test.ts', milliseconds: 70.4, output: /not ok 1 - nope/ }])
  t.match(stray, ['  ---', '  exitCode: 1', '  ...'])
})

t.test('the report loses no failure that has no test of its own', async (t) => {
  const crash = ['# Subtest: c', '    1..0', 'not ok 1 - c # time=1ms']
  t.equal(report(crash).line, '0 passed, 1 failed')
  t.equal(report(['not ok 5 - timeout!']).line, '0 passed, 1 failed')
  t.equal(
    report(['# Subtest: c', '    # Subtest: hangs', '        ok 1 - x']).line,
    '0 passed, 1 failed',
  )
  const plan = ['# Subtest: c', '    # Subtest: g', '        # Subtest: l', '        ok 1 - l']
  t.equal(report([...plan, '    not ok 1 - g', 'not ok 1 - c']).line, '1 passed, 1 failed')
  const late = [
    '# Subtest: c',
    '    # Subtest: l',
    '    ok 1 - l',
    '    not ok 2 - late',
    'not ok 1 - c',
  ]
  t.equal(report(late).line, '1 passed, 1 failed')
})

function report(lines: readonly string[]): {
  files: readonly FileReport[]
  stray: readonly string[]
  line: string
} {
  const files: FileReport[] = []
  const stray: string[] = []
  const reader = createReportReader(
    (done) => files.push(done),
    (text) => stray.push(text),
  )
  for (const text of lines) reader.line(text)
  return { files, stray, line: totalsLine(reader.end()) }
}
