import type { Test } from 'tap'
import type { startProbe } from '../../helpers/ops.ts'

type LookAt = Awaited<ReturnType<typeof startProbe>>['lookAt']

/** A check by its name, what it has that the others have not, and what it says where it is not good. */
export type Row = readonly [name: string, check: object, says?: string | RegExp | undefined]

/** Looks at checks of one kind: each is good, or says what its row has. */
export async function finds(t: Test, lookAt: LookAt, kind: object, rows: readonly Row[]) {
  const found = await lookAt(rows.map(([name, check]) => ({ ...kind, name, ...check })))
  for (const [name, , says] of rows) {
    const line = found.said.find((text) => text.startsWith(`${name}: `))
    const said = line?.slice(name.length + 2)
    if (says instanceof RegExp) t.match(said, says, name)
    else t.equal(said, says, name)
    t.equal(found.good[name], says === undefined, name)
  }
  return found
}
