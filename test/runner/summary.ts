import { dirname } from 'node:path'
import type { FileResult } from './pool.ts'

const MOST_SHOWN = 10

/** Reasons to skip a test that no test machine of ours can do away with. Any other skipped test fails where CI is set. */
const ACCEPTED_REASONS: readonly RegExp[] = [
  /^every Node of this machine is new enough$/,
  // The long suite: kernels of containers, and agents that are too large to be dependencies.
  /^no \w+ here: set GATEHOUSE_TEST_AGENTS$/,
  /^(?:systemd does|containers do) not start here: /,
  /^none can run here: /,
]

/**
 * The end of a run's output: where processor time went, each skipped test with its reason, and once more each failure
 * with the command that runs its file alone. In continuous integration a test that was skipped without an accepted
 * reason is a failure: `unaccepted` counts those.
 */
export function summarize(results: readonly FileResult[], isCi: boolean) {
  const skips = results.flatMap(({ name, skips }) =>
    skips.map((skip) => ({ file: name, ...skip })),
  )
  const isAccepted = ({ reason }: { reason: string }) =>
    !isCi || ACCEPTED_REASONS.some((accepted) => accepted.test(reason))
  const lines = [
    ...costLines(results),
    ...skips
      .filter(isAccepted)
      .map(({ file, name, reason }) => `# skipped: ${file}: ${name}: ${reason}`),
  ]
  const unaccepted = skips.filter((skip) => !isAccepted(skip))
  for (const { file, name, reason } of unaccepted) {
    lines.push(`not ok ${file}: ${name}: skipped, expected to run where CI is set: ${reason}`)
  }
  for (const { name, failures, stderr, failed } of results) {
    if (failed === 0) continue
    const shown = failures.length > 0 ? failures : [stderr.trimEnd()]
    lines.push(`not ok ${name}`, ...shown, `  to run it alone: npm test -- ${name}`)
  }
  return { lines, unaccepted: unaccepted.length }
}

function costLines(results: readonly FileResult[]) {
  const folders = new Map<string, number>()
  for (const { name, cpuSeconds } of results) {
    folders.set(dirname(name), (folders.get(dirname(name)) ?? 0) + cpuSeconds)
  }
  const files = results.map(({ name, cpuSeconds }): [string, number] => [name, cpuSeconds])
  return [
    '# CPU seconds by folder, without what the files share:',
    ...mostFirst([...folders]),
    '# CPU seconds by file:',
    ...mostFirst(files).slice(0, MOST_SHOWN),
  ]
}

function mostFirst(costs: readonly (readonly [string, number])[]) {
  return costs
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, cpuSeconds]) => `#   ${cpuSeconds.toFixed(1)} ${name}`)
}
