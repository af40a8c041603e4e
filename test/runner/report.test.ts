import { t } from 'tap'
import { createReportReader, totalsLine } from './report.ts'
import type { FileReport } from './report.ts'

t.test('sub-tests without sub-tests of their own are counted, failures named', async (t) => {
  const { line, failures } = report([
    'TAP version 14',
    '# Subtest: group',
    '    ok 1 - set-up',
    '    # Subtest: leaf',
    '        ok 1 - one',
    '        ok 2 - two',
    '        1..2',
    '    ok 2 - leaf # time=1ms',
    '    # Subtest: bad',
    '        not ok 1 - nope',
    '          ---',
    '          diff: |',
    '            ok 1 - quoted',
    '          ...',
    '        1..1',
    '    not ok 3 - bad # time=1ms',
    '    ok 4 - later # SKIP why',
    '    1..4',
    'not ok 1 - group # time=4ms',
    '1..1',
  ])
  t.equal(line, '1 passed, 1 failed, 1 skipped')
  t.same(failures, ['not ok group > bad > nope\n    ok 1 - quoted'])
})

t.test('no failure is lost that has no test of its own', async (t) => {
  const none = '0 passed, 1 failed'
  t.equal(report([]).line, none, 'a file that says nothing')
  t.equal(report(['TAP version 14', 'not ok 1 - timeout!', '1..1']).line, none)
  t.equal(report(['# Subtest: hangs', '    ok 1 - x']).line, none, 'cut off')
  const one = '1 passed, 1 failed'
  const leaf = ['# Subtest: l', '    ok 1 - l', '    1..1', 'ok 1 - l']
  t.equal(report([...leaf, 'not ok 2 - late', '1..2']).line, one, 'beside a sub-test')
  const group = ['# Subtest: g', ...leaf.map((text) => `    ${text}`), 'not ok 1 - g', '1..1']
  t.equal(report(group).line, one, 'a plan that was not kept')
})

function report(lines: readonly string[]): FileReport & { readonly line: string } {
  const reader = createReportReader()
  reader.write(lines.map((text) => `${text}\n`).join(''))
  const read = reader.end()
  return { ...read, line: totalsLine(read) }
}
