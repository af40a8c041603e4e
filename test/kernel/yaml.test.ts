import { isDeepStrictEqual } from 'node:util'
import { t } from 'tap'
import { parse } from 'yaml'
import { toYaml } from '../../kernel/yaml.ts'
import type { Plain } from '../../kernel/yaml.ts'

const TEXTS = [
  ...['', ' ', 'a b', ' a', 'a ', 'a: b', 'a:b', '- a', '-', '#a', 'a #b', '"', "'a'", '`', '@a'],
  ...['true', 'Null', 'no', 'y', '~', '3.1.0', '1e3', '0x1', '.5', '2026-01-01', '=', '<<', '?'],
  ...['a\nb', '\ta', 'a\r', '---', '...', '[a]', '{a}', 'a, b', '&a', '*a', '!a', '%a', '|', '>'],
  ...['\\', 'a\\nb', '\0', '\u007f', '\u0085', '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff'],
  ...['é', '😀', '\ud800', '$ref', '/a/{b}', 'application/json', "it's (so) [x]"],
]

t.test('what is written is read back by another reader', async (t) => {
  t.same(
    TEXTS.filter((text) => parse(toYaml(text)) !== text),
    [],
  )
  const members = TEXTS.map((text) => ({ [text]: [text] }))
  t.same(
    members.filter((member) => !isDeepStrictEqual(parse(toYaml(member)), member)),
    [],
  )
  for (const value of [0, -1.5, 1e21, 1e-7, true, false, null, [], {}]) {
    t.same(parse(toYaml(value)), value)
  }
})

t.test('every nesting of lists and members', async (t) => {
  const leaves: readonly Plain[] = ['x', 1, null, [], {}]
  const wrap = (parts: readonly Plain[]): readonly Plain[] =>
    parts.flatMap((part) => [[part], [part, part], { a: part }, { a: part, b: part }, [[part]]])
  const values = [...wrap(leaves), ...wrap(wrap(leaves)), ...wrap(wrap(wrap(leaves)))]
  t.ok(values.length > 500)
  t.same(
    values.filter((value) => !isDeepStrictEqual(parse(toYaml(value)), value)),
    [],
  )
})

t.test('block style for people; members without a value are left out', async (t) => {
  const value = { openapi: '3.1.0', tags: [{ name: 'Links', about: undefined }], list: [[1, 2]] }
  t.equal(toYaml(value), 'openapi: "3.1.0"\ntags:\n  - name: Links\nlist:\n  - - 1\n    - 2\n')
})
