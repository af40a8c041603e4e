import { t } from 'tap'
import { markdown } from '../../html/markdown.ts'
import { render } from '../../kernel/html.ts'

const PRE = '<pre class="payload" tabindex="0"><code>'

const CASES: readonly (readonly [name: string, text: string, expected: string])[] = [
  ['nothing', '', ''],
  ['paragraphs', 'One\ntwo.\n\n\nThree.', '<p>One\ntwo.</p><p>Three.</p>'],
  ['lines of Windows', 'One\r\n\r\ntwo', '<p>One</p><p>two</p>'],
  ['a list', '- one\n- two', '<ul><li>one</li><li>two</li></ul>'],
  ['other marks', '* one\n+ two\n• three', '<ul><li>one</li><li>two</li><li>three</li></ul>'],
  ['a numbered list', '1. one\n2) two', '<ol><li>one</li><li>two</li></ol>'],
  ['one that goes on', '3. three', '<ol start="3"><li>three</li></ol>'],
  ['after a text', 'These:\n- one', '<p>These:</p><ul><li>one</li></ul>'],
  [
    'an item of two lines',
    '- one\n  goes on\n- two',
    '<ul><li>one\ngoes on</li><li>two</li></ul>',
  ],
  ['a loose list', '- one\n\n- two\n\nEnd', '<ul><li>one</li><li>two</li></ul><p>End</p>'],
  ['two lists', '- one\n1. two', '<ul><li>one</li></ul><ol><li>two</li></ol>'],
  ['a mark without text', '-\n- ', '<p>-\n- </p>'],
  ['no list', '-5 degrees\n1.5 s', '<p>-5 degrees\n1.5 s</p>'],
  ['bold', 'It is **down** now', '<p>It is <strong>down</strong> now</p>'],
  ['no bold', '2 ** 3 ** 4, **', '<p>2 ** 3 ** 4, **</p>'],
  ['code', 'Run `df -h **x**`', '<p>Run <code>df -h **x**</code></p>'],
  ['code in bold', '**run `df`**', '<p><strong>run <code>df</code></strong></p>'],
  ['a lone back quote', 'the ` key', '<p>the ` key</p>'],
  ['a heading', '## Summary ##\nAll well', '<p><strong>Summary</strong></p><p>All well</p>'],
  [
    'a block of code',
    '```json\n{"a": 1}\n\n- b\n```\nend',
    `${PRE}{&quot;a&quot;: 1}\n\n- b</code></pre><p>end</p>`,
  ],
  ['one that does not end', '```\na\nb', `${PRE}a\nb</code></pre>`],
  ['no links', '[a](https://x.example) <b>', '<p>[a](https://x.example) &lt;b&gt;</p>'],
  ['no images', '![a](https://x.example/p)', '<p>![a](https://x.example/p)</p>'],
  ['markup in code', '`<i>` **<b>**', '<p><code>&lt;i&gt;</code> <strong>&lt;b&gt;</strong></p>'],
]

t.test('the little of Markdown that models use', (t) => {
  for (const [name, text, expected] of CASES) {
    // White space around the items of a list is not shown.
    const shown = render(markdown(text)).replaceAll(/\s*(<\/?[ou]l[^>]*>)\s*/g, '$1')
    t.equal(shown, `<div class="markdown">${expected}</div>`, name)
  }
  t.end()
})

t.test('a text made to be slow is not', (t) => {
  for (const piece of ['`', '**', '** ', '- ', '#', '```\n', '1. a\n\n']) {
    const text = piece.repeat(100_000 / piece.length)
    t.ok(render(markdown(text)).length > 0, piece)
  }
  t.end()
})
