import { t } from 'tap'
import { FAULTS, misfitOf } from '../mutation/faults.ts'

t.test('every planted fault has one place in the sources, and a test', async (t) => {
  for (const fault of FAULTS) t.equal(misfitOf(fault), undefined, fault.why)
  const names = FAULTS.map(({ why }) => why)
  t.equal(new Set(names).size, names.length, 'each has its own name')
})

t.test('a fault that does not fit is named', async (t) => {
  const fits = {
    why: 'any Host is served',
    path: 'kernel/net/guard.ts',
    test: 'test/hooks/guards.test.ts',
    find: '!isLoopbackName(name)',
    replace: 'false',
  }
  const misfits = [
    [{}, undefined],
    [{ path: 'kernel/net/gone.ts' }, /^there is no kernel\/net\/gone\.ts$/],
    [{ test: 'test/hooks/gone.test.ts' }, /^there is no test\/hooks\/gone\.test\.ts$/],
    [{ find: 'is gone' }, /^kernel\/net\/guard\.ts has 0 times "is gone"$/],
    [{ find: 'headers' }, /^kernel\/net\/guard\.ts has \d\d times "headers"$/],
    [{ replace: '(' }, /SyntaxError/],
  ] as const
  for (const [change, misfit] of misfits) t.match(misfitOf({ ...fits, ...change }), misfit)
})
