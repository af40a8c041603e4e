/** The headers of a request for a WebSocket. */
export const WEB_SOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** Lines that announce a body, which no request for a WebSocket has. */
export const BODIES: readonly string[] = [
  'Content-Length: 5',
  'Transfer-Encoding: chunked',
  'Expect: 100-continue\r\nContent-Length: 5',
]

/** Bytes, in hex, that are no frame of a client, or none that may come first. */
export const FRAMES: Readonly<Record<string, string>> = {
  'without a mask': '810161',
  'with a reserved bit': 'c1810000000061',
  'of an unknown kind': '838000000000',
  'a ping in parts': '098000000000',
  'a ping of 128 bytes': `89fe008000000000${'00'.repeat(128)}`,
  'of 2^64 bytes': '81ffffffffffffffffff00000000',
  'of 256 MiB': '81ff000000001000000000000000',
  'the rest of nothing': '808000000000',
  'a message within another': '0181000000006181810000000061',
  'no UTF-8': '818200000000c328',
  'a close of one byte': '88810000000003',
  'a close without a reason that exists': '88820000000003ec',
  'HTTP instead': Buffer.from('GET / HTTP/1.1\r\n\r\n').toString('hex'),
  'no JSON': '8183000000006f6e65',
}
