import { t } from 'tap'
import { createLiveText } from '../../../services/ops/agent/quirks/live-text.ts'

const CALL = '<tool_call>{"name": "run_check", "arguments": {}}</tool_call>'

/** An answer in pieces, what it says once it is whole, and the lines that were put out. */
const CASES: readonly (readonly [
  name: string,
  pieces: readonly string[],
  whole: string,
  live: readonly string[],
  rest: readonly string[],
])[] = [
  ['lines', ['\nOne', '\n\ntwo\nthr', 'ee'], 'One\n\ntwo\nthree', ['One', '', 'two'], ['three']],
  [
    'reasoning',
    ['<thi', 'nk>Hm.\nWell', '.\n</think>\nOne\nt', 'wo'],
    'One\ntwo',
    ['One'],
    ['two'],
  ],
  ['twice', ['<think>A</think>\n<think>\nB\n</think>\nOne\n'], 'One', ['One'], []],
  ['that never closes', ['<think>Or is it\nmore\n'], '', [], []],
  [
    'a mark further on is a quotation',
    ['One\nGET /</think>\n<think>\ntwo'],
    'One\nGET /</think>\n<think>\ntwo',
    ['One', 'GET /</think>', '<think>'],
    ['two'],
  ],
  ['marks of a template', ['One\ntwo<|im_end|>\n'], 'One\ntwo', ['One', 'two'], []],
  [
    'a call',
    ['I look.\n<tool_', `call>\n{"name": "x"}\n</tool_call>\nok`],
    'I look.',
    ['I look.'],
    [],
  ],
  ['a call within a line', [`I look. ${CALL}\n`], 'I look.', [], ['I look.']],
  [
    'code that is no call',
    ['It is\n```\n{}\n```\nEnd'],
    'It is\n```\n{}\n```\nEnd',
    ['It is'],
    ['```\n{}\n```\nEnd'],
  ],
  [
    'a call that is text',
    ['See\n', `it: ${CALL}.\nEnd`],
    `See\nit: ${CALL}.\nEnd`,
    ['See'],
    [`it: ${CALL}.\nEnd`],
  ],
]

t.test('the lines of an answer as they come', (t) => {
  for (const [name, pieces, whole, live, rest] of CASES) {
    const passed: string[] = []
    const text = createLiveText((line) => passed.push(line))
    for (const piece of pieces) text.add(piece)
    t.same(passed, live, name)
    text.end(whole)
    t.same(passed, [...live, ...rest], `${name}: the rest`)
  }
  t.end()
})

t.test('an answer that breaks off, and the one after it', (t) => {
  const passed: string[] = []
  const text = createLiveText((line) => passed.push(line))
  text.add('One\ntw')
  text.cut()
  t.same(passed, ['One', 'tw'])
  text.add('<think>Hm')
  text.cut()
  text.add('One\n')
  text.end('One')
  t.same(passed, ['One', 'tw', 'One'])
  t.end()
})
