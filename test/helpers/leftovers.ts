import type { Owner } from './owner.ts'

const GRACE_MS = 10_000

/**
 * Ends a file's process that is still there ten seconds after its last test, with the status of its tests, and says
 * what kept it: without this the run would wait for five minutes and call the file failed without a reason.
 */
export function endWithTests(root: Owner): void {
  root.teardown(() => {
    const late = setTimeout(() => {
      const kept = process.getActiveResourcesInfo().join(', ')
      process.stderr.write(`# ${process.argv[1]} did not end after its tests; it has: ${kept}\n`)
      process.exit()
    }, GRACE_MS)
    late.unref()
  })
}
