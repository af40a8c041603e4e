import { messageOf } from '../kernel/log.ts'
import { DONE, FAILED } from './output.ts'
import { openProgram, type Program, type ProgramOptions } from './program.ts'
import { openServiceManager } from './systemd.ts'

/** Running requests may finish within this time; the whole stop takes ten seconds at most. */
const GRACE_MS = 7_000
const STOP_MS = 10_000

export interface ServeOptions extends ProgramOptions {
  /** Prints the ready line. */
  readonly ready: (line: string) => void
  readonly stopSignal: () => Promise<string>
}

/** `gatehouse serve`: runs until a signal comes, and gives the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const { log, stopSignal } = options
  process.umask(0o077)
  const manager = openServiceManager(log)
  const stop = new AbortController()
  const stopAsked = stopSignal().then((signal) => {
    log.info('stopping', { signal })
    manager.stopping()
    endInTime()
    stop.abort(new Error(`stopped by ${signal}`))
  })
  try {
    const program = await openProgram(options, stop.signal)
    sayReady(options, program)
    manager.ready(addressText(program))
    const failure = await Promise.race([stopAsked, program.failed])
    const failed = failure instanceof Error
    if (failed) {
      log.error('embedded database died', { error: messageOf(failure) })
      manager.stopping()
      endInTime()
    }
    await program.close(GRACE_MS)
    log.info('stopped')
    return failed ? FAILED : DONE
  } catch (error) {
    if (stop.signal.aborted) return DONE
    manager.stopping()
    // Parts that could not be closed must not keep the process alive.
    endInTime()
    throw error
  } finally {
    log.flush()
  }
}

/** Ends the process when the stop takes too long. */
function endInTime(): void {
  setTimeout(() => process.exit(FAILED), STOP_MS).unref()
}

function sayReady({ version, log, ready }: ServeOptions, program: Program): void {
  const addresses = addressText(program)
  ready(`gatehouse ${version} ready ${addresses}`)
  log.info('ready', { version, backend: program.backend, addresses })
}

function addressText({ addresses }: Program): string {
  return [...addresses].map(([service, address]) => `${service}=${address}`).join(' ')
}
