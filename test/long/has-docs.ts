import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { request } from '../helpers/http.ts'
import { ROOT } from '../helpers/program.ts'

/** The documentation is whole: a page, a decision, a picture, the search. */
export async function hasDocs(t: Test, address: string) {
  const docs = `${address}/-/docs/`
  t.match(await request(`${docs}hooks`), { status: 200, text: /<h1 id="hooks">/ })
  t.equal((await request(`${docs}decisions/048-actors`)).status, 200)
  const picture = await request(`${docs}pictures/hooks-log.png`)
  t.ok(picture.body.equals(readFileSync(join(ROOT, 'docs/pictures/hooks-log.png'))))
  t.match((await request(`${docs}search?q=backup`)).text, /upgrade#backup-and-restore/)
}
