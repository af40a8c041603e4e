#!/usr/bin/env node
// Plain JavaScript that every Node can read, so that an older one says what is missing.
import { lstatSync, mkdirSync } from 'fs'
import module from 'module'
import { homedir } from 'os'
import { join } from 'path'

const NEEDED = 26

/**
 * The next start takes half the time: compiled modules are kept in a folder of this user's. What
 * stands there is run, so a folder in which others can write is not used.
 */
function keepCompiled() {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'gatehouse')
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(folder)
    if (uid === process.getuid() && (mode & 0o170077) === 0o040000) {
      module.enableCompileCache(folder)
      // For threads and for instances.
      process.env.NODE_COMPILE_CACHE ||= folder
    }
  } catch {
    // A user without a home, or a disk that is full: it starts without.
  }
}

if (Number.parseInt(process.versions.node, 10) >= NEEDED) {
  keepCompiled()
  import('./server.ts')
} else {
  process.stderr.write(
    `gatehouse: this is Node ${process.versions.node}, and Gatehouse needs Node ${NEEDED} or newer: ` +
      'on Linux (x64 or arm64) `npm ci` brings it for `npm start` and `npx gatehouse`; elsewhere install it\n',
  )
  process.exitCode = 1
}
