import { listenOptions } from '../../kernel/net/listen.ts'
import { findProgram } from '../../kernel/processes/find-program.ts'
import { runCommand } from '../../kernel/processes/run.ts'
import { DOCS } from '../../services/docs-markdown.ts'
import { holderOf } from './listen-problem.ts'
import { command, type Surroundings } from '../frame/command.ts'
import { placeOf, SERVICES, serviceUrl, type ConfigSource } from '../frame/configuration.ts'
import { DONE, FAILED } from '../frame/output.ts'

/** What a desktop tells its programs, for the one that opens the browser. */
const DESKTOP = ['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'DBUS_SESSION_BUS_ADDRESS', 'BROWSER']

export const commands = [
  command({
    name: 'docs',
    summary: 'open the documentation of the running server in a browser, and print its address',
    needs: 'configuration',
    async run(_call, { config, environment, output }) {
      const address = await docsAddress(config)
      if (address === undefined) {
        throw new Error(
          'no running Gatehouse was found: start it; a browser reaches one that listens on a ' +
            'unix socket by its public address alone (HOOKS_BASE_URL)',
        )
      }
      output.out(address)
      const opener = openerOf(environment)
      if (opener === undefined) return DONE
      const { problem, code } = await runCommand([opener, address], {
        inherit: DESKTOP,
        leaves: true,
      })
      if (code === 0) return DONE
      output.err(`${opener} did not open it: ${problem ?? `exit code ${code}`}`)
      return FAILED
    },
  }),
]

/** Where the first service that runs has the documentation. */
async function docsAddress(config: ConfigSource) {
  for (const service of SERVICES) {
    const url = serviceUrl(service, config)
    if (url === undefined) continue
    const { address } = placeOf(service, config)
    // A socket that systemd passes has no address here: its public address must be right.
    const isThere = address.kind === 'fd' || (await holderOf(listenOptions(address, [])))
    if (isThere) return url + DOCS
  }
  return undefined
}

/** The program that opens a browser; undefined without a desktop. */
function openerOf({ PATH = '', DISPLAY, WAYLAND_DISPLAY }: Surroundings['environment']) {
  if (findProgram('xdg-open', PATH) !== undefined) {
    return DISPLAY || WAYLAND_DISPLAY ? 'xdg-open' : undefined
  }
  // A Mac has no variable that tells of its desktop.
  return findProgram('/usr/bin/open', PATH) && findProgram('/usr/bin/sw_vers', PATH)
    ? '/usr/bin/open'
    : undefined
}
