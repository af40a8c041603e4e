import { t } from 'tap'
import { html, render } from '../../kernel/html.ts'
import { percentText } from '../../html/chart.ts'
import { hooksFrame } from '../../html/hooks/layout.ts'
import { durationText } from '../../html/ops/layout.ts'
import { breakable, sizeTag, sizeText, timeTag } from '../../html/parts.ts'

t.test('sizes are short, and exact in the title', async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KB'],
    [2150, '2.1 KB'],
    [10_239, '10 KB'],
    [1_048_575, '1.0 MB'],
    [26_214_400, '25 MB'],
  ]
  for (const [bytes, text] of cases) t.equal(sizeText(bytes), text, String(bytes))
  t.match(render(sizeTag(2150)), 'title="2150 bytes"')
})

t.test('only the whole is 100 %', async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [0, '0.00 %'],
    [57 / 100, '57.00 %'],
    [99_999 / 100_000, '99.99 %'],
    [1, '100 %'],
  ]
  for (const [part, text] of cases) t.equal(percentText(part), text, String(part))
})

t.test('durations have no 60 seconds', async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [40, '0.0 s'],
    [9_960, '10 s'],
    [59_400, '59 s'],
    [59_700, '1 min 0 s'],
    [12_000_000, '3 h 20 min'],
    [187_200_000, '2 d 4 h'],
  ]
  for (const [ms, text] of cases) t.equal(durationText(ms), text, String(ms))
})

t.test('times are UTC until the script knows better', async (t) => {
  const text = render(timeTag(new Date('2026-05-04T08:30:00.123Z')))
  t.equal(text, '<time datetime="2026-05-04T08:30:00.123Z">2026-05-04 08:30:00 UTC</time>')
})

t.test('addresses are broken at their marks, e-mail addresses after the @ alone', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['ann@mail.example.com', 'ann@|mail.example.com'],
    ['generic:ci', 'generic:|ci'],
    ['https://a.test/x?y=1&z=2', 'https:|/|/|a.|test/|x?|y=1&amp;|z=2'],
    ['word', 'word'],
  ]
  for (const [text, parts] of cases) {
    t.equal(render(breakable(text)).replaceAll('<wbr />', '|'), parts, text)
  }
})

t.test('the layout marks the present page and escapes its title', async (t) => {
  const text = render(hooksFrame({ title: '<b>', section: 'log', body: html`<p>body</p>` }, []))
  t.match(text, /^<!doctype html>/)
  t.match(text, '<title>&lt;b&gt; · Gatehouse</title>')
  t.equal(text.match(/aria-current="page"/g)?.length, 1)
  t.match(text, /href="\/log"[^>]*aria-current="page"/)
  t.match(text, '<p>body</p>')
})
