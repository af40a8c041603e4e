/**
 * `node:http` without an import: that would read all of its exports, among them a client of
 * WebSockets, which loads another 6 MiB into the process.
 */
export const http = process.getBuiltinModule('node:http')
