import { chmodSync, copyFileSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { runCliProcess } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { noSystemd, runInSystemd } from './systemd.ts'

// The units in a real systemd, where this machine lets root make namespaces of every kind.

t.test('the units in a real systemd', { skip: noSystemd() }, async (t) => {
  const folder = await temporaryFolder(t, 'systemd')
  const built = await runCliProcess([join(folder, 'gatehouse')], {
    program: [process.execPath, 'deploy/build.ts'],
  })
  if (built.code !== 0) throw new Error(`the build failed: ${built.stderr}`)
  cpSync(join(ROOT, 'deploy'), join(folder, 'deploy'), { recursive: true })
  copyFileSync(join(import.meta.dirname, 'on-systemd.sh'), join(folder, 'run.sh'))
  const model = 'model-endpoint.py'
  copyFileSync(join(import.meta.dirname, model), join(folder, model))
  chmodSync(folder, 0o755)
  const { found, stderr } = runInSystemd(t, folder)
  if (found.get('booted') === undefined) {
    // Namespaces can be made, but not all that systemd needs.
    return void t.pass('', { skip: `systemd does not start here: ${stderr.slice(-300)}` })
  }
  const is = (name: string, expected: string | RegExp) =>
    void (expected instanceof RegExp
      ? t.match(found.get(name), expected, name)
      : t.equal(found.get(name), expected, name))
  is('install', '0')
  is('start', '0 active gatehouse')
  is('status', 'hooks=http://127.0.0.1:8080 links=http://127.0.0.1:8081 ops=http://127.0.0.1:8082')
  is('answers', '200 200 200')
  is('rights', 'CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2')
  is('bounds', '3221225472 512')
  is('credential', /^payments signed stripe enabled configured /)
  is('restart', '0')
  is('asked meanwhile', /^\d+ 200$/)
  is('killed', '200 1')
  is('wrong setting', /^1 [1-9]/)
  is('waited', '200')
  is('stopped', 'inactive refused refused')
  is('after a command of root', '0')
  is('stuck', '1 200')
  is('without the drop-in', /^warn {2}sandbox: commands of the inventory are off: bwrap: /)
  is('with the drop-in', 'ok    sandbox: bwrap works')
  const hidden = 'FileNotFoundError2 FileNotFoundError2'
  const outcomes = `ConnectionRefusedError111 ProcessLookupError3 ${hidden} OSError30`
  is('a command in the sandbox', outcomes)
})
