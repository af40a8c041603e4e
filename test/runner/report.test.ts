import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { t } from 'tap'
import { temporaryFolder } from '../helpers/owner.ts'
import { groupFiles, runGroups } from './pool.ts'
import { createReportReader, totalsLine } from './report.ts'
import { summarize } from './summary.ts'

/** A file that has ended without a test. */
const ENDED = {
  passed: 0,
  failed: 0,
  skipped: 0,
  failures: [],
  skips: [],
  stderr: '',
  milliseconds: 0,
  cpuSeconds: 0,
}

t.test('sub-tests without sub-tests of their own are counted, failures named', async (t) => {
  const { line, failures, skips } = report(`TAP version 14
# Subtest: group
    ok 1 - set-up
    # Subtest: leaf
        ok 1 - one
        ok 2 - two
        1..2
    ok 2 - leaf # time=1ms
    # Subtest: bad
        not ok 1 - nope
          ---
          diff: |
            ok 1 - quoted
          ...
        1..1
    not ok 3 - bad # time=1ms
    ok 4 - later # SKIP why
    1..4
not ok 1 - group # time=4ms
1..1
`)
  t.equal(line, '1 passed, 1 failed, 1 skipped')
  t.same(failures, ['not ok group > bad > nope\n    ok 1 - quoted'])
  t.same(skips, [{ name: 'group > later', reason: 'why' }])
})

t.test(
  'the end of a run names skipped tests, and failures with the command that repeats them',
  async (t) => {
    const reason = 'every Node of this machine is new enough'
    const results = [
      { ...ENDED, name: 'test/a/one.test.ts', skips: [{ name: 'old', reason }], cpuSeconds: 1.25 },
      {
        ...ENDED,
        name: 'test/a/two.test.ts',
        failed: 1,
        failures: ['not ok nope'],
        cpuSeconds: 2,
      },
      {
        ...ENDED,
        name: 'test/b/three.test.ts',
        skips: [{ name: 'far', reason: 'missing: Caddy' }],
      },
    ]
    const costs = [
      '# CPU seconds by folder, without what the files share:',
      '#   3.3 test/a',
      '#   0.0 test/b',
      '# CPU seconds by file:',
      '#   2.0 test/a/two.test.ts',
      '#   1.3 test/a/one.test.ts',
      '#   0.0 test/b/three.test.ts',
    ]
    const failure = [
      'not ok test/a/two.test.ts',
      'not ok nope',
      '  to run it alone: npm test -- test/a/two.test.ts',
    ]
    const accepted = `# skipped: test/a/one.test.ts: old: ${reason}`
    const here = '# skipped: test/b/three.test.ts: far: missing: Caddy'
    t.same(summarize(results, false), {
      lines: [...costs, accepted, here, ...failure],
      unaccepted: 0,
    })
    const refused =
      'not ok test/b/three.test.ts: far: skipped, expected to run where CI is set: missing: Caddy'
    t.same(summarize(results, true), {
      lines: [...costs, accepted, refused, ...failure],
      unaccepted: 1,
    })
  },
)

t.test('no failure is lost that has no test of its own', async (t) => {
  const none = '0 passed, 1 failed'
  t.equal(report('').line, none, 'a file that says nothing')
  t.equal(report('TAP version 14\nnot ok 1 - timeout!\n1..1\n').line, none)
  t.equal(report('# Subtest: hangs\n    ok 1 - x\n').line, none, 'cut off')
  const one = '1 passed, 1 failed'
  const leaf = '# Subtest: l\n    ok 1 - l\n    1..1\nok 1 - l\n'
  t.equal(report(`${leaf}not ok 2 - late\n1..2\n`).line, one, 'beside a sub-test')
  const group = `# Subtest: g\n${leaf.replaceAll(/^/gm, '    ').trimEnd()}\nnot ok 1 - g\n1..1\n`
  t.equal(report(group).line, one, 'a plan that was not kept')
})

t.test('a file among others of its process has no plan of its own', async (t) => {
  const part = 'ok 7 - one\n# Subtest: two\n    ok 1 - x\n    1..1\nok 8 - two\n'
  t.equal(report(part, true).line, '1 passed, 0 failed')
  t.equal(report(part).line, '1 passed, 1 failed', 'its process died')
})

t.test('files of one process: each has its own result, also where the process dies', async (t) => {
  const tap = `import { t } from '${import.meta.resolve('tap')}'\n`
  const passes = "t.test('passes', async (t) => t.ok(true))\n"
  const folder = await temporaryFolder(t)
  const sources = {
    'a.ts': `${tap}t.teardown(() => console.error('a ends'))\n${passes}`,
    'b.ts': `${tap}console.error('b begins')\nt.test('fails', async (t) => t.ok(false))\n`,
    'c.ts': `${tap}t.test('dies', async () => process.exit(3))\n`,
    'd.ts': `${tap}${passes}await Promise.reject(new Error('not loaded'))\n`,
    'e.ts': `${tap}${passes}`,
    'f.ts': '',
    'g.ts': `${tap}t.test('throws later', async () => {
      setTimeout(() => { throw new Error('late') })
      void Promise.reject(new Error('nobody waits'))
      await new Promise(() => undefined)
    })\n`,
  }
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(folder, name), text)
  const groups = groupFiles(
    ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => join(folder, `${name}.ts`)),
    5,
  )
  t.same(
    groups.map(({ length }) => length),
    [5, 2],
  )
  const options = { jobs: 1, fileSeconds: 60, signal: new AbortController().signal }
  const results = await runGroups(groups, options, () => undefined)
  t.same(
    results.map((result) => `${basename(result.name)} ${totalsLine(result)}`),
    [
      'a.ts 1 passed, 0 failed',
      'b.ts 0 passed, 1 failed',
      'c.ts 0 passed, 1 failed',
      'd.ts 1 passed, 1 failed',
      'e.ts 1 passed, 0 failed',
      'f.ts 0 passed, 1 failed',
      'g.ts 0 passed, 1 failed',
    ],
  )
  t.match(results[3]?.failures, [/not loaded/])
  t.match(results[6]?.failures, [/^not ok throws later > (?:late|nobody waits)\n/])
  t.equal(results.map(({ stderr }) => stderr).join(''), 'a ends\nb begins\n')
})

/** What is read of the TAP of a file; one that `hasEnded` among others has no plan. */
function report(tap: string, hasEnded = false) {
  const reader = createReportReader()
  reader.write(tap)
  const read = reader.end(hasEnded)
  return { ...read, line: totalsLine(read) }
}
