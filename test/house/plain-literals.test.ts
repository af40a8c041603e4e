import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'

const SOURCES = ['server.ts', '{commands,db,html,kernel,routes,services,deploy,bench,test}/**/*.ts']

/** `...{ a, b }`, and `...[a, b]` unless a method of the list follows. */
const SPREAD = /\.\.\.(?:\{|\[[^[\]]*\](?!\.))/g

t.test('no literal is spread into another one: its members stand there themselves', async (t) => {
  const files = globSync(SOURCES, { cwd: ROOT })
  t.ok(files.length > 500, 'the sources were found')
  const found = files.flatMap((file) => {
    const lines = readFileSync(join(ROOT, file), 'utf8').split('\n')
    return lines.flatMap((line, at) =>
      line.search(SPREAD) >= 0 && !line.trimStart().startsWith('*') ? [`${file}:${at + 1}`] : [],
    )
  })
  t.same(found, [])
})
