#!/usr/bin/env node
// Plain JavaScript that every Node can read, so that an older one says what is missing.
const NEEDED = 26

if (Number.parseInt(process.versions.node, 10) >= NEEDED) {
  import('./server.ts')
} else {
  process.stderr.write(
    `gatehouse: this is Node ${process.versions.node}, and Gatehouse needs Node ${NEEDED} or newer: ` +
      'on Linux (x64 or arm64) `npm ci` brings it for `npm start` and `npx gatehouse`; elsewhere install it\n',
  )
  process.exitCode = 1
}
