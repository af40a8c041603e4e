import { t } from 'tap'
import { jsonTree } from '../../../html/hooks/log/events/json-tree.ts'
import { render } from '../../../kernel/html.ts'
import { readJson } from '../../../services/hooks/log/events/json-nodes.ts'

const BOUNDS = { nodes: 100, depth: 6 }

function treeOf(text: string) {
  const root = readJson(text, BOUNDS)
  if (root === undefined) throw new Error(`${text} is no JSON within the bounds`)
  return render(jsonTree(root, 'generic:ci'))
}

/** The text of a tree, without its markup. */
function textOf(tree: string) {
  return tree
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

/** The filters that a tree links to. */
function filtersOf(tree: string) {
  return [...tree.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => {
    const { searchParams } = new URL(href.replaceAll('&amp;', '&'), 'http://gatehouse.test')
    t.equal(searchParams.get('provider'), 'generic:ci')
    return searchParams.get('json') ?? ''
  })
}

t.test('values stand as they were sent, in their order', async (t) => {
  const text = '{"b":12345678901234567890,"2":1e3,"1":[true,null,{}],"a":"\\u0041 \\"\\n"}'
  t.equal(
    textOf(treeOf(text)),
    'b : 12345678901234567890 2 : 1e3 1 [3] 0 : true 1 : null 2 : {} ' +
      'a : &quot;\\u0041 \\&quot;\\n&quot;',
  )
  t.equal(textOf(treeOf(' [ ] ')), '[]')
  t.equal(textOf(treeOf('"a"')), '&quot;a&quot;')
})

t.test('a value leads to the events that have it, where a filter can name it', async (t) => {
  const named = '{"data":{"object":{"id":"evt_1","n":1.50,"paid":true}},"list":[{"a-b":""}]}'
  t.same(filtersOf(treeOf(named)), [
    'data.object.id=evt_1',
    'data.object.n=1.50',
    'data.object.paid=true',
    'list.0.a-b=',
  ])
  t.same(filtersOf(treeOf('{"a.b":{"c d":1},"é":2}')), ['a\\.b.c\\ d=1', 'é=2'])
  const nameless = [
    '{"":1}',
    '{"a\\nb":1}',
    '{"a":null}',
    '{"a":1e3}',
    '{"a":-0}',
    '{"a":"ends with a space "}',
    '{"a":"\\u0000"}',
    '{"a":"\\ud800"}',
    `{"a":"${'x'.repeat(500)}"}`,
    '"alone"',
  ]
  for (const text of nameless) t.same(filtersOf(treeOf(text)), [], text)
})

t.test('long lists and deep members are folded', async (t) => {
  const deep = treeOf('{"a":{"b":{"c":{"d":{}, "e":[1]}}}}')
  t.equal(deep.split('<details open>').length - 1, 3)
  t.equal(deep.split('<details').length - 1, 4)
  t.notMatch(treeOf(`{"a":[${'0,'.repeat(60)}0]}`), '<details open>')
})

t.test('what is no JSON, or too much of it, has no tree', async (t) => {
  const texts = ['', 'a=b', '{"a":1', '{"a":1}{', `[${'0,'.repeat(100)}0]`, '[[[[[[0]]]]]]']
  for (const text of texts) t.equal(readJson(text, BOUNDS), undefined, text)
  t.ok(readJson(`[${'0,'.repeat(98)}0]`, BOUNDS), 'a hundred values')
  t.ok(readJson('[[[[0]]]]', BOUNDS), 'five deep')
})
