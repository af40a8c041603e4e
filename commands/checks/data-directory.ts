import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../kernel/log.ts'
import { doubt, fine, wrong, type Finding } from './finding.ts'

/** Below this nothing may be left for a segment of the write-ahead log (16 MiB) and the next ones. */
export const LEAST_FREE = 64 * 1024 * 1024
/** Below this there is time to do something. */
export const LITTLE_FREE = 1024 * 1024 * 1024
const OTHERS = 0o007
const OTHERS_WRITE = 0o002

/** Whether the data directory, or the folder that it will be made in, can be written and has room. */
export function dataDirectoryFindings(directory: string): readonly Finding[] {
  const there = nearest(directory)
  const access = accessFinding(directory, there)
  return [access, ...(access.level === 'fail' ? [] : [spaceFinding(there)])]
}

function nearest(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearest(dirname(path))
}

function accessFinding(directory: string, there: string): Finding {
  const what = 'data directory'
  try {
    const info = statSync(there)
    if (!info.isDirectory()) return wrong(what, `${there} is a file: choose another folder`)
    accessSync(there, constants.R_OK | constants.W_OK | constants.X_OK)
    if (there !== directory) return fine(what, `${directory}, not created yet`)
    if ((info.mode & OTHERS_WRITE) !== 0)
      return wrong(what, `everybody on this host may write in ${directory}: chmod 700 ${directory}`)
    if ((info.mode & OTHERS) !== 0)
      return doubt(
        what,
        `everybody on this host may look into ${directory}: chmod 700 ${directory}`,
      )
    return fine(what, directory)
  } catch (error) {
    return wrong(
      what,
      `${there} can't be written by this user (${messageOf(error)}): correct its owner, or set GATEHOUSE_DATA_DIR`,
    )
  }
}

function spaceFinding(place: string): Finding {
  try {
    const { bavail, bsize, blocks } = statfsSync(place)
    return roomFinding(place, blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize)
  } catch (error) {
    return doubt('free space', `not known (${messageOf(error)})`)
  }
}

/** What is said of so many free bytes. */
export function roomFinding(place: string, free: number): Finding {
  const what = 'free space'
  if (!Number.isFinite(free)) return fine(what, `no limit in ${place}`)
  const amount = `${amountOf(free)} in ${place}`
  if (free < LEAST_FREE) return wrong(what, `only ${amount}: make room, 64 MiB at least`)
  if (free < LITTLE_FREE)
    return doubt(what, `${amount}: make room, or keep fewer events (settings of hooks)`)
  return fine(what, amount)
}

function amountOf(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return mebibytes < 1024 ? `${Math.floor(mebibytes)} MiB` : `${(mebibytes / 1024).toFixed(1)} GiB`
}
