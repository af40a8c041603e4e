import fc from 'fast-check'
import { MARKER, oddText } from './values.ts'

/** Name and value. */
export type Header = readonly [string, string]

/** What browsers and programs send beside what is asked. */
export const usualHeaders: fc.Arbitrary<readonly Header[]> = fc.constantFrom<readonly Header[]>(
  [],
  [['accept', '*/*']],
  [['accept', 'application/json']],
  [['accept', 'text/html,application/xhtml+xml']],
  [['hx-request', 'true']],
  [
    ['accept', 'text/html'],
    ['sec-fetch-mode', 'navigate'],
    ['sec-fetch-site', 'same-origin'],
  ],
)

const ODD_NAMES = [
  ...['accept', 'accept', 'accept-encoding', 'origin', 'origin', 'referer', 'cookie', 'cookie'],
  ...['sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'hx-request', 'hx-current-url'],
  ...['if-none-match', 'if-modified-since', 'range', 'last-event-id', 'last-event-id', 'expect'],
  ...['mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name', 'content-encoding'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded', 'x-real-ip'],
  ...['remote-email', 'authorization', 'authorization', 'x-webhook-token', 'x-request-id'],
  ...['upgrade', 'sec-websocket-key', 'sec-websocket-version', 'x-http-method-override', 'te'],
  ...['x-event-type', 'webhook-id', 'idempotency-key', 'user-agent', 'x-api-key', '__proto__'],
] as const

const oddHeaderValue = fc.oneof(
  fc.constantFrom(
    ...['*/*;q=0', 'text/html', 'application/json', 'null', 'http://evil.example', 'cross-site'],
    ...[
      'same-site',
      'navigate',
      'image',
      'true',
      '"x", W/"y"',
      'bytes=0-1',
      '0',
      '-1',
      '999999999999999',
    ],
    ...[
      '2147483648',
      '127.0.0.1, 10.0.0.1',
      '::ffff:127.0.0.1',
      'for="[::1]"',
      'a=b; c=d',
      '100-continue',
    ],
    ...[
      '2026-07-28',
      '2025-06-18',
      '1999-01-01',
      'Bearer',
      'Bearer x',
      'Basic OnB3',
      'gzip',
      'websocket',
      '13',
    ],
    ...[
      'dGhlIHNhbXBsZSBub25jZQ==',
      'DELETE',
      'x'.repeat(4_000),
      'x'.repeat(17_000),
      '\u00e9\u00ff',
      'a\tb',
    ],
  ),
  // A header holds bytes; what would end it is another request.
  oddText.map((text) =>
    Buffer.from(text)
      .toString('latin1')
      .replaceAll(/[\r\n]/g, ' '),
  ),
)
/** Headers that programs act on, with values that are odd there. */
export const oddHeaders: fc.Arbitrary<readonly Header[]> = fc.array(
  fc.tuple(fc.constantFrom(...ODD_NAMES), oddHeaderValue),
  { minLength: 1, maxLength: 4 },
)
/** In place of the name of the service: none, another, none that can be, two. */
export const oddHost = fc.constantFrom<readonly Header[]>(
  ...([[], [['host', '']], [['host', 'evil.example']], [['host', 'localhost']]] as Header[][]),
  ...([[['host', '[::1]:1']], [['host', `a${MARKER}`]], [['host', 'a, b']]] as Header[][]),
  [
    ['host', 'localhost'],
    ['host', 'evil.example'],
  ],
)
