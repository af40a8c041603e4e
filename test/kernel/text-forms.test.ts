import { t } from 'tap'
import { formatDuration, parseDuration } from '../../kernel/time.ts'
import { parseHosts } from '../../kernel/net/addresses.ts'
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { toYaml } from '../../kernel/openapi.ts'

t.test('durations as text', async (t) => {
  const same: Readonly<Record<string, number>> = {
    '0': 0,
    '1s': 1,
    '90s': 90,
    '15m': 900,
    '24h': 86_400,
    '25h': 90_000,
    '7d': 604_800,
  }
  for (const [text, seconds] of Object.entries(same)) {
    t.equal(parseDuration(text), seconds, text)
    t.equal(formatDuration(seconds), text, text)
  }
  t.equal(parseDuration('1d'), 86_400)
  t.equal(formatDuration(3_601), '3601s')
  for (const text of ['', '5', 'h', '1.5h', '-1h', '1 h', '1H', '1h30m', '1w', '1234567890s']) {
    t.equal(parseDuration(text), undefined, `"${text}"`)
  }
})

function named(list: string, url: string) {
  return parseHosts(list)(new URL(url))
}

t.test('a host without a port is allowed on every port', async (t) => {
  t.ok(named('localhost', 'https://localhost:8443/hook?x=1'))
  t.ok(named('a.test, localhost', 'http://LOCALHOST:3000/'))
  t.notOk(named('localhost', 'http://localhost.evil.test/'))
  t.notOk(named('localhost', 'http://sub.localhost/'))
  t.notOk(named('localhost', 'http://127.0.0.1/'), 'a name is not its address')
})

t.test('a host with a port is allowed on that port alone', async (t) => {
  t.ok(named('localhost:3000', 'http://localhost:3000/hook'))
  t.notOk(named('localhost:3000', 'http://localhost:3001/hook'))
  t.ok(named('a.test:443', 'https://a.test/'), "the scheme's own port")
  t.notOk(named('a.test:80', 'https://a.test/'))
})

t.test('an address is the same in every spelling', async (t) => {
  t.ok(named('127.0.0.1:3000', 'http://2130706433:3000/'))
  t.ok(named('[0:0::1]:9000', 'http://[::1]:9000/'))
  t.notOk(named('10.0.0.5', 'http://10.0.0.50/'))
})

t.test('what is no host is refused by its place, and not quoted', async (t) => {
  t.throws(() => parseHosts('a, u:password@b'), { message: 'entry 2 is no host or host:port' })
  const bad = ['', 'a,,b', 'http://a', 'a/b', 'a:0', 'a:65536', 'a:b', 'u@a', '::1', '[::1', 'a b']
  for (const text of bad) t.throws(() => parseHosts(text), /is no host or host:port/, text)
})

/** One text a line. */
const LINES = String.raw`a b
 a
a: b
a:b
- a
-
#a
a #b
"
'a'
@a
true
Null
no
y
~
3.1.0
1e3
0x1
.5
2026-01-01
=
<<
?
---
...
[a]
{a}
a, b
&a
*a
!a
%a
|
>
\
a\nb
é
😀
$ref
/a/{b}
application/json
it's (so) [x]`.split('\n')

/** What a line can't have. */
const OTHERS = [
  '',
  ' ',
  'a ',
  '`',
  'a\nb',
  '\ta',
  'a\r',
  '\0',
  '\u007f',
  '\u0085',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\ufffe',
  '\uffff',
  '\ud800',
]
const TEXTS = [...LINES, ...OTHERS]

t.test('what is written is read back by another reader', async (t) => {
  t.same(
    TEXTS.filter((text) => parse(toYaml(text)) !== text),
    [],
  )
  const members = TEXTS.map((text) => ({ [text]: [text] }))
  t.same(
    members.filter((member) => !isDeepStrictEqual(parse(toYaml(member)), member)),
    [],
  )
  for (const value of [0, -1.5, 1e21, 1e-7, true, false, null, [], {}]) {
    t.same(parse(toYaml(value)), value)
  }
})
