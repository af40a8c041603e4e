import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t } from 'tap'
import type { Owner } from '../helpers/owner.ts'
import { deploymentParts, ensureSystemParts, longParts, systemParts } from './system-parts.ts'

/** An apt-get that installs by making a file, notes its calls, and knows every name but those with `unknown` in them. */
const APT = `#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >>calls
for name; do :; done # the last word
case "$*" in
*update) [ UPDATE_CODE = 0 ] || echo "E: no network" >&2; exit UPDATE_CODE ;;
*unknown*) echo "E: Unable to locate package $name" >&2; exit 100 ;;
*) touch "has-$name" ;;
esac
`

/** A machine with this apt-get and without its parts, each of which needs these packages. */
function machine(t: Owner, packages: readonly (readonly string[])[], updateCode = 0) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-apt-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const aptGet = join(folder, 'apt-get')
  writeFileSync(aptGet, APT.replaceAll('UPDATE_CODE', String(updateCode)))
  chmodSync(aptGet, 0o755)
  const isInstalled = (name: string) => existsSync(join(folder, `has-${name}`))
  const parts = packages.map((debianPackages) => ({
    name: `Part ${debianPackages[0]}`,
    debianPackages,
    find: () => (debianPackages.every(isInstalled) ? folder : undefined),
  }))
  /** The calls of apt-get so far, without its options. */
  const calls = () => readFileSync(join(folder, 'calls'), 'utf8').split('\n')
  return { aptGet, parts, calls }
}

t.test('every package is installed by a call of its own, once', async (t) => {
  const { aptGet, parts, calls } = machine(t, [['a'], ['b', 'c'], ['c']])
  t.equal(ensureSystemParts(parts, { isRoot: true, aptGet }), undefined)
  const install = '-q install -y --no-install-recommends'
  t.same(calls(), ['-q update', `${install} a`, `${install} b`, `${install} c`, ''])
  t.equal(ensureSystemParts(parts, { isRoot: true, aptGet }), undefined)
  t.equal(calls().length, 5, 'what is there is not asked for again')
})

t.test('a name that apt does not know keeps no other away, and is told', async (t) => {
  const { aptGet, parts } = machine(t, [['unknown-1', 'a'], ['b']])
  t.equal(
    ensureSystemParts(parts, { isRoot: true, aptGet }),
    'missing: Part unknown-1; install the Debian packages: apt-get install unknown-1 a; ' +
      'apt-get install -y --no-install-recommends unknown-1 failed: E: Unable to locate package unknown-1',
  )
  t.ok(parts[1]?.find())
})

t.test('without a network the lists stay old, and known packages are still tried', async (t) => {
  const { aptGet, parts } = machine(t, [['a'], ['unknown-1']], 100)
  const line = ensureSystemParts(parts, { isRoot: true, aptGet })
  t.match(line, /; apt-get update failed: E: no network; apt-get install .+ unknown-1 failed: E: /)
  t.ok(parts[0]?.find())
})

t.test('nothing is installed by others than root, or without apt-get', async (t) => {
  const { aptGet, parts, calls } = machine(t, [['a'], ['b', 'c']])
  const advice = 'missing: Part a, Part b; install the Debian packages: apt-get install a b c'
  t.equal(ensureSystemParts(parts, { isRoot: false, aptGet }), advice)
  t.equal(ensureSystemParts(parts, { isRoot: true, aptGet: undefined }), advice)
  t.throws(calls, { code: 'ENOENT' })
})

t.test('each part names packages one by one', async (t) => {
  const all = [...systemParts, ...Object.values({ ...deploymentParts, ...longParts })]
  for (const { name, debianPackages } of all) {
    t.ok(debianPackages.length > 0, name)
    for (const each of debianPackages) t.match(each, /^[a-z0-9][a-z0-9.+-]+$/, name)
  }
})
