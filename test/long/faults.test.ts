import { t } from 'tap'
import { FAULTS } from '../mutation/faults.ts'
import { copySources, passesWith, passesWithout } from '../mutation/run.ts'

// Each planted fault is found: its test passes on the sources as they are, and fails with the fault.

const JOBS = 2
/** Only faults whose name or path contains this are tried. */
const wanted = process.env['GATEHOUSE_TEST_FAULTS'] ?? ''

const copies = Array.from({ length: JOBS }, copySources)
t.jobs = JOBS
for (const fault of FAULTS) {
  if (!`${fault.why} ${fault.path}`.includes(wanted)) continue
  void t.test(fault.why, async (t) => {
    const copy = copies.pop()
    if (copy === undefined) throw new Error('more tests run at a time than there are copies')
    t.ok(await passesWithout(fault), `${fault.test} passes without it`)
    t.notOk(await passesWith(fault, copy), `${fault.test} fails with it`)
    copies.push(copy)
  })
}
