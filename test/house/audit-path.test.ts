import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'

const IMPORT = /^import (type )?([^']*? from )?'([^']+)'/gm
const NAMED = /`([\w/.-]+\.ts)`/g

/**
 * The section of the security page: a table of what decides, the words and rows that it reads, a
 * table of what applies, and the rest.
 */
const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
const [, section = ''] = page.split('## The audit path\n')
const [, decides = '', applies = ''] = section.split('|---|---|\n')
const [, carries = ''] = section.split('What carries, ')
const [, wordsOf = ''] = section.split('\nThe words that it uses ')
const [, rowsOf = ''] = section.split('\nThe rows that the first list reads, ')

/** A list of files with their texts. */
function listed(part: string) {
  const [rows = ''] = part.split('\n\n')
  const paths = [...rows.matchAll(NAMED)].map(([, path = '']) => path)
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]))
}

const first = listed(decides)
const second = listed(applies)
const third = listed(carries)
const rows = listed(rowsOf)
const words = listed(wordsOf)

/** What a file imports at run time: types are gone by then. */
function runtimeImports(text: string) {
  const found = [...text.matchAll(IMPORT)].filter(([, type, names = '']) => {
    const [, inBraces] = /^\{([^}]*)\} from $/.exec(names) ?? []
    const typesAlone = inBraces !== undefined && /^(\s*type \w+,?)+\s*$/.test(inBraces)
    return type === undefined && !typesAlone
  })
  return found.map(([, , , target = '']) => target)
}

/** The imports of a list's files that are none of the known ones. */
function strangeImports(files: ReadonlyMap<string, string>, known: ReadonlySet<string>) {
  return [...files].flatMap(([path, text]) =>
    runtimeImports(text)
      .map((target) => (target.startsWith('.') ? join(path, '..', target) : target))
      .filter((target) => !known.has(target) && !target.startsWith('node:'))
      .map((target) => `${path} imports ${target}`),
  )
}

function linesOf(files: ReadonlyMap<string, string>) {
  return [...files.values()].reduce((sum, text) => sum + text.split('\n').length - 1, 0)
}

t.test('both lists are short enough to be read', async (t) => {
  t.ok(first.size > 25 && second.size > 10 && third.size > 10, 'the tables were found')
  const paths = [...section.matchAll(NAMED)].map(([, path = '']) => path)
  t.same(
    paths.filter((path, at) => paths.indexOf(path) !== at && !path.startsWith('test/')),
    [],
    'each file stands there once',
  )
  for (const [files, max] of [
    [first, 3_500],
    [second, 2_500],
  ] as const) {
    t.ok(linesOf(files) <= max, `${linesOf(files)} lines, ${max} at most`)
  }
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  t.match(readme, /3,500 lines/)
  t.match(readme, /2,500/)
})

t.test('what decides imports nothing else', async (t) => {
  t.same(strangeImports(first, new Set([...first.keys(), ...rows.keys(), ...words.keys()])), [])
})

t.test('the words that it uses import words alone', async (t) => {
  t.ok(words.size > 5, 'the words were found')
  t.same(strangeImports(words, new Set([...words.keys()])), [])
})

t.test('the rows that it reads are data: they import rows alone, and call nothing', async (t) => {
  t.ok(rows.size > 5, 'the rows were found')
  t.same(strangeImports(rows, new Set(rows.keys())), [])
  const calls = /=>|\bfunction\b|\bclass\b|\bnew\b|[\w)\]]\(/
  for (const [path, text] of rows) {
    const code = text.replace(/\/\*[^]*?\*\/|\/\/.*|'[^'\n]*'|\/\^.*\$\//g, '')
    t.notMatch(code, calls, path)
  }
})

t.test('what applies imports what decides, and what is named beside it', async (t) => {
  const known = [...first, ...second, ...third, ...words].map(([path]) => path)
  t.same(strangeImports(second, new Set([...known])), [])
  const used = [...second.entries()].flatMap(([path, text]) =>
    runtimeImports(text).map((target) => join(path, '..', target)),
  )
  t.same(
    [...third.keys()].filter((path) => !used.includes(path)),
    [],
    'and needs each of it',
  )
})

t.test('an import of types alone is none at run time', async (t) => {
  const text = `import type { A } from './a.ts'
import { type B, type C } from './b.ts'
import { d, type E } from './d.ts'
import {
  f,
} from './f.ts'
import g from './g.ts'
import './h.ts'`
  t.same(runtimeImports(text), ['./d.ts', './f.ts', './g.ts', './h.ts'])
})
