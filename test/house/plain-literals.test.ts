import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { ROOT } from '../helpers/program.ts'

const SOURCES = [
  'server.ts',
  '{commands,db,html,kernel,routes,services,deploy,bench,test}/**/*.ts',
]

/** A spread of an object, and of a list unless a method of it follows. */
const SPREAD = /[.]{3}(?:\{|\[[^[\]]*\](?!\s*[.]))/g

t.test('no literal is spread into another one: its members stand there themselves', async (t) => {
  const files = globSync(SOURCES, { cwd: ROOT })
  t.ok(files.length > 800, 'the sources were found')
  const found = files.flatMap((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8')
    return [...text.matchAll(SPREAD)].map(([spread]) => `${file}: ${spread}`)
  })
  t.same(found, [])
})
