import { once } from 'node:events'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { cpuSecondsSoFar } from '../helpers/process-figures.ts'
import { beginLine, endLine } from './marks.ts'

// node test/runner/group.ts FILES: runs test files in this process, one after the other, below the current folder.
// What they load is loaded once, and compiled code stays warm. A comment in the TAP says where each begins and ends.

const hooks = registerHooks({
  resolve(name, context, next) {
    return next(
      name === 'async-hook-domain' ? import.meta.resolve('./last-domain.ts') : name,
      context,
    )
  },
})
const { t } = await import('tap')
hooks.deregister()

/** A program that a test runs in this process sets its own. */
const umask = process.umask()
let measured = 0

for (const file of process.argv.slice(2)) {
  const begin = performance.now()
  const ends: (() => unknown)[] = []
  // What a file tears down ends with the file and not with the process.
  Object.assign(t, { teardown: (end: () => unknown) => void ends.push(end) })
  t.comment(beginLine(file))
  try {
    await import(resolve(file))
    while (!t.idle) await once(t, 'idle')
  } catch (error) {
    t.error(error, file)
  }
  for (const end of ends.toReversed()) {
    await Promise.try(end).catch((error: unknown) => t.error(error, `${file} ends`))
  }
  process.umask(umask)
  const total = cpuSecondsSoFar()
  t.comment(endLine({ milliseconds: performance.now() - begin, cpuSeconds: total - measured }))
  measured = total
}
