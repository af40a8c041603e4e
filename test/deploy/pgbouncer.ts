import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { clusterAccount } from '../helpers/postgres.ts'
import { ROOT, recordProcess, runFolder } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'
import { onPath } from '../runner/system-parts.ts'
import { openFolder } from './nginx.ts'

/** A PgBouncer of our own. */
export type PgBouncer = {
  /** The database's address through it. */
  readonly url: string
  /** Ends it and starts it again on the same port. */
  restart(): Promise<void>
}

/**
 * Starts PgBouncer with `deploy/cluster/pgbouncer.ini` in front of a database. Only addresses, the file of
 * passwords and what `changes` names are other ones. It ends with the test.
 */
export async function startPgBouncer(
  t: Owner,
  database: string,
  changes: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  const { hostname, port: serverPort, username, password, pathname } = new URL(database)
  const [folder, port] = [openFolder(t), await freePort()]
  const file = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'userlist.txt')
  writeFileSync(users, `"${username}" "${password}"\n`)
  let text = readFileSync(join(ROOT, 'deploy/cluster/pgbouncer.ini'), 'utf8').replace(
    /^gatehouse = .*$/m,
    `${pathname.slice(1)} = host=${hostname} port=${serverPort}`,
  )
  const own = { listen_port: String(port), auth_file: users, unix_socket_dir: '', ...changes }
  for (const [name, value] of Object.entries(own)) {
    const line = `${name} = ${value}`
    const pattern = new RegExp(`^${name} = .*$`, 'm')
    text = pattern.test(text) ? text.replace(pattern, line) : `${text}${line}\n`
  }
  writeFileSync(file, text)
  for (const path of [folder, file, users]) chmodSync(path, 0o755)

  const run = () => startProcess(folder, file, port)
  let child = await run()
  async function end() {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    await exit
  }
  t.teardown(end)
  const url = new URL(database)
  url.port = String(port)
  return {
    url: url.href,
    async restart() {
      await end()
      child = await run()
    },
  }
}

async function startProcess(folder: string, file: string, port: number) {
  const program = onPath('pgbouncer')
  if (program === undefined) throw new Error('PgBouncer is missing: apt-get install pgbouncer')
  const log = openSync(join(folder, 'log'), 'a')
  // It refuses root.
  const child = spawn(program, [file], { ...clusterAccount(), stdio: ['ignore', log, log] })
  closeSync(log)
  if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
  await until(async () => {
    if (child.exitCode !== null) return 'ended'
    const socket = connect(port, '127.0.0.1')
    const accepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return accepted
  }, 'PgBouncer to accept connections')
  if (child.exitCode !== null) throw new Error(readFileSync(join(folder, 'log'), 'utf8'))
  return child
}
