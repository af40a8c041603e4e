import { gzipSync } from 'node:zlib'
import { t } from 'tap'
import type { Test } from 'tap'
import { extent } from '../helpers/program.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { payloadOf } from '../helpers/hooks.ts'
import { HOOKS_LIMIT, flood, headOf, isWell, refuses, startBombed } from './bomb-setup.ts'

// Bodies that are larger, longer or in more pieces than anybody means, at each kind of route of all three
// services: 413 or 400 in the service's own shape, on a connection that ends; nothing of them is stored,
// and the next request is answered.

const MB = 1_000_000
/** How much of a declared 100 MB is there to send; the server hears 64 MiB of it at most. */
const SENT = extent({ short: 10, long: 100 }) * MB
/** In chunks of one byte each, which cost 400 times as much when they are kept as they come. */
const ONES = extent({ short: 600_000, long: 2_000_000 })

const bombed = await startBombed(t)
const { server, targets, portOf } = bombed
const before = await bombed.stored()

const reading = Object.entries(targets).filter(([, { limit }]) => limit !== undefined)

await t.test('bodies', async (t: Test) => {
  const piece = 'x'.repeat(65_536)
  const extension = 'x'.repeat(20_000)
  // At once, since the rest of what was refused is heard for seconds.
  const answers = reading.map(async ([name, target]) => {
    const port = portOf(target.service)
    const chunked = headOf(target, 'Transfer-Encoding: chunked')
    const declared = headOf(target, `Content-Length: ${100 * MB}`, 'Connection: close')
    const large = await flood(port, declared, piece, SENT)
    refuses(t, large.text, target, 413, `${name}: 100 MB`)
    const endless = await flood(port, chunked, `10000\r\n${piece}\r\n`, Infinity)
    refuses(t, endless.text, target, 413, `${name}: chunks without end`)
    t.ok(endless.closed, `${name}: chunks without end: cut after ${endless.sent} bytes`)
    const extended = await flood(port, `${chunked}1;a=`, extension, 1)
    refuses(t, extended.text, target, 400, `${name}: a long extension`)
    t.ok(extended.closed, `${name}: a long extension: cut`)
  })
  await Promise.all(answers)
  await isWell(t, bombed, 'bodies')
})

await t.test('one-byte chunks', async (t: Test) => {
  const { generic } = targets
  if (generic === undefined) throw new Error('there is no target generic')
  const start = headOf(generic, 'Transfer-Encoding: chunked', 'Connection: close')
  const many = '1\r\nx\r\n'.repeat(ONES / 100)
  const { text } = await flood(portOf('hooks'), start, many, ONES * 6, '0\r\n\r\n')
  t.match(text, /^HTTP\/1\.1 202 /)
  const id = Number(/"id":(\d+)/.exec(text)?.[1])
  t.ok((await payloadOf(server.hooks, id)).equals(Buffer.alloc(ONES, 'x')), 'stored as it came')
})

await t.test('compressed bodies are never inflated', async (t: Test) => {
  const bomb = gzipSync(Buffer.alloc(extent({ short: 50, long: 500 }) * MB, ' '))
  t.ok(bomb.length < HOOKS_LIMIT)
  // The long one is larger, as it comes, than what the API takes.
  const refused = extent({ short: /^HTTP\/1\.1 400 /, long: /^HTTP\/1\.1 (?:400|413) / })
  for (const [name, target] of reading) {
    if (name.endsWith('form') || name === 'ops webhook') continue
    const length = `Content-Length: ${bomb.length}`
    const start = headOf(target, 'Content-Encoding: gzip', length, 'Connection: close')
    const { text } = await flood(portOf(target.service), start, bomb, 1)
    if (name === 'generic') {
      t.match(text, /^HTTP\/1\.1 202 /)
      const id = Number(/"id":(\d+)/.exec(text)?.[1])
      t.ok((await payloadOf(server.hooks, id)).equals(bomb), 'stored as it came')
    } else t.match(text, name === 'signed' ? /^HTTP\/1\.1 401 / : refused, name)
  }
})

t.test('what is stored, and the log', async (t: Test) => {
  t.same(await bombed.stored(), [2, ...before.slice(1)], 'the two that were accepted')
  noFailureIn(t, server)
})
