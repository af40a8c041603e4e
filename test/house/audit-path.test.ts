import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'

const MAX_LINES = 4_000
const PACKAGES = ['typebox', 'typebox/compile']
const IMPORT = /^import (type )?([^']*? from )?'([^']+)'/gm

const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
const [, section = ''] = page.split('## The audit path\n')
const [, table = ''] = section.split('|---|---|\n')
const [rows = ''] = table.split('\n\n')
const paths = [...rows.matchAll(/`([\w/.-]+\.ts)`/g)].map(([, path = '']) => path)
const texts = new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]))

/** What a file imports at run time: types are gone by then. */
function runtimeImports(text: string): readonly string[] {
  const found = [...text.matchAll(IMPORT)].filter(([, type, names = '']) => {
    const [, inBraces] = /^\{([^}]*)\} from $/.exec(names) ?? []
    const typesAlone = inBraces !== undefined && /^(\s*type \w+,?)+\s*$/.test(inBraces)
    return type === undefined && !typesAlone
  })
  return found.map(([, , , target = '']) => target)
}

t.test('the audit path is short enough to be read', async (t) => {
  t.ok(paths.length > 25, 'the table was found')
  t.equal(new Set(paths).size, paths.length, 'each file stands there once')
  const lines = [...texts.values()].reduce((sum, text) => sum + text.split('\n').length - 1, 0)
  t.ok(lines <= MAX_LINES, `${lines} lines, ${MAX_LINES} at most`)
})

t.test('the audit path imports nothing else', async (t) => {
  for (const [path, text] of texts) {
    for (const target of runtimeImports(text)) {
      const local = join(path, '..', target)
      const isKnown = target.startsWith('.')
        ? texts.has(local)
        : target.startsWith('node:') || PACKAGES.includes(target)
      t.ok(isKnown, `${path} imports ${target}`)
    }
  }
})

t.test('an import of types alone is none at run time', async (t) => {
  const text = [
    "import type { A } from './a.ts'",
    "import { type B, type C } from './b.ts'",
    "import { d, type E } from './d.ts'",
    "import {\n  f,\n} from './f.ts'",
    "import g from './g.ts'",
    "import './h.ts'",
  ].join('\n')
  t.same(runtimeImports(text), ['./d.ts', './f.ts', './g.ts', './h.ts'])
})
