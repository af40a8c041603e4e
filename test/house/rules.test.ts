import { t } from 'tap'
import { cycles, importViolations } from './layers.ts'
import { codeOf, importsOf, matches, type SourceFile } from './source-tree.ts'

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
  t.same(broken('kernel/http/websocket.ts', "import { WebSocket } from 'ws'"), [])
  t.same(
    broken('routes/hooks/events/events.ts', "import { a } from '../../html/hooks/events/list.ts'"),
    [],
  )
  t.same(
    broken('html/hooks/events/list.ts', "import type { E } from '../../db/hooks/events.ts'"),
    [],
  )
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
  t.match(broken('services/ops/a.ts', "const x = await import('../../routes/ops.ts')"), [
    /may not/,
  ])
  t.match(broken('kernel/ws.ts', "import { WebSocket } from 'ws'"), [/kernel may import node:/])
  t.match(broken('commands/a.ts', "import { WebSocket } from 'ws'"), [
    /only kernel\/http\/websocket\.ts/,
  ])
  t.match(broken('services/ops/a.ts', "import postgres from 'postgres'"), [/only db\/ may import/])
  t.match(broken('db/a.ts', "import { PGlite } from '@electric-sql/pglite'"), [
    /only db\/embedded/,
  ])
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
