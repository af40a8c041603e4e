import { t } from 'tap'
import {
  CHECK_SHOP,
  SHOP_IS_WELL,
  calls,
  refusal,
  says,
  sse,
  startModelOps,
  whole,
} from '../helpers/model.ts'
import type { Answer } from '../helpers/model.ts'
import { outputOf } from '../helpers/ops.ts'

const { ops, asked, play, toldAfter } = await startModelOps(t)

/** A call of `run_check` as a piece of an answer. */
function piece(id: string, args: unknown = '{"service":"shop"}', index = 0, name = 'run_check') {
  return { index, id, function: { name, arguments: args } }
}

/** Calls of tools, a piece for each, in whatever form. */
function callDeltas(...pieces: readonly object[]): Answer {
  return sse(
    pieces.map((call) => ({ tool_calls: [call] })),
    'tool_calls',
  )
}

const NO_ID = { type: 'function', function: piece('').function }
/** Tool calls as servers give them; each is meant as `run_check {"service": "shop"}`. */
const MEANT: readonly (readonly [from: string, answer: Answer, calls?: number])[] = [
  ['Ollama: parallel calls with one index', callDeltas(piece('a'), piece('b')), 2],
  ['adapters of Gemini: one index and no ids', callDeltas(piece(''), piece('')), 2],
  ['equal ids', callDeltas(piece('a'), piece('a', undefined, 1)), 2],
  ['a name in each piece', callDeltas(piece('a', '{"service"'), piece('a', ':"shop"}'))],
  ['arguments as an object', callDeltas(piece('a', { service: 'shop' }))],
  ['arguments encoded twice', callDeltas(piece('a', '"{\\"service\\":\\"shop\\"}"'))],
  ['null for what is optional', callDeltas(piece('a', '{"service":"shop","check":null}'))],
  ['gpt-oss: functions.NAME', callDeltas(piece('a', undefined, 0, 'functions.run_check'))],
  ['gpt-oss: a mark', callDeltas(piece('a', undefined, 0, 'run_check<|channel|>commentary'))],
  ['not streamed, without ids', whole({ content: null, tool_calls: [NO_ID] })],
]

t.test('tool calls that break the protocol are taken as meant', async (t) => {
  const { session, summary } = await play([...MEANT.map(([, answer]) => answer), 'All is well.'])
  t.match({ ...session, summary }, { status: 'completed', summary: 'All is well.' })
  for (const [at, [from, , count = 1]] of MEANT.entries()) {
    const messages = asked()[at + 1]?.messages ?? []
    const last = messages.findLastIndex(({ role }) => role === 'assistant')
    const results = messages.slice(last + 1).map(({ content }) => content)
    t.equal(results.length, count, from)
    for (const result of results) t.match(result, SHOP_IS_WELL, from)
    const calls = messages[last]?.tool_calls ?? []
    t.equal(new Set(calls.map((call) => JSON.stringify(call))).size, count, `${from}: ids differ`)
    for (const call of calls) t.equal(call.function.name, 'run_check', from)
  }
})

t.test('what a server wants back with a call goes back as it came', async (t) => {
  const extra_content = { google: { thought_signature: 'c2lnbmF0dXJl' } }
  const call = { ...piece('a'), extra_content }
  const answer = sse([
    { reasoning_content: 'I ' },
    { reasoning_content: 'look.' },
    { tool_calls: [call] },
  ])
  const { summary } = await play([answer, 'All is well.'])
  t.equal(summary, 'All is well.')
  const said = asked()[1]?.messages.at(-2)
  t.match(said, { reasoning_content: 'I look.', tool_calls: [{ id: 'a', extra_content }] })
})

const MISSING =
  'service is missing: it must be a text of 1 to 2000 characters (Name of the service)'
/** Arguments, and what the model is told of them. */
const ARGUMENTS: readonly (readonly [tool: string, args: unknown, told: string | RegExp])[] = [
  ['recall', { limit: '5', service: null }, 'Nothing is remembered of that.'],
  ['recall', { limit: 'many' }, 'Error: limit must be a number from 1 to 100; you sent "many"'],
  ['recall', { limit: 1.5 }, 'Error: limit must be a whole number from 1 to 100; you sent 1.5'],
  ['recall', { limit: 500 }, 'Error: limit must be a number from 1 to 100; you sent 500'],
  ['read_events', { level: 'x' }, /^Error: level must be one of "info", .*; you sent "x"$/],
  ['run_check', {}, `Error: ${MISSING}`],
  [
    'run_check',
    { name: 'shop' },
    `Error: ${MISSING}\nname is not known: run_check takes service, check`,
  ],
  [
    'run_check',
    ['shop'],
    /^Error: the arguments must be one JSON object, such as \{"service":"…"\}; you sent \["shop"\]$/,
  ],
  [
    'run_check',
    { service: { name: 'shop' } },
    /^Error: service must be a text .*; you sent \{"name":"shop"\}$/,
  ],
  [
    'run_check',
    '{"service": ',
    /^Error: The arguments are not JSON: write one JSON object.*; you sent \{"service":/,
  ],
]

t.test('arguments: texts are read as numbers, and what is wrong is said plainly', async (t) => {
  await play([...ARGUMENTS.map(([tool, args]) => calls([tool, args])), 'Done.'])
  for (const [at, [, , told]] of ARGUMENTS.entries()) {
    if (typeof told === 'string') t.equal(toldAfter(at), told)
    else t.match(toldAfter(at), told)
  }
  t.equal(asked().length, ARGUMENTS.length + 1)
})

t.test('content in parts, empty choices, a reply without a reason for its end', async (t) => {
  const parts = [
    { type: 'text', text: 'All is' },
    { type: 'text', text: ' well.' },
  ]
  const empty = {
    headers: { 'content-type': 'text/event-stream' },
    body: `data: {"choices":[]}\n\ndata: {"choices":null}\n\n${sse([{ content: 'All is well.' }]).body}`,
  }
  const bare = {
    headers: { 'content-type': 'text/plain' },
    body: whole({ content: 'All is well.' }, null).body,
  }
  const cases: readonly (readonly [string, Answer])[] = [
    ['parts', sse([{ content: parts }])],
    ['parts, not streamed', whole({ content: parts })],
    [
      'a thought among the parts',
      sse([
        { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] },
        { content: parts },
      ]),
    ],
    ['empty choices', empty],
    ['no finish_reason', says('All is well.', null)],
    ['no finish_reason, not streamed', whole({ content: 'All is well.' }, null)],
    ['JSON of another type', bare],
  ]
  for (const [what, answer] of cases) {
    const { summary, session } = await play([CHECK_SHOP, answer])
    t.match({ ...session, summary }, { summary: 'All is well.', num_turns: 2 }, what)
  }
  const { session } = await play([
    CHECK_SHOP,
    whole({}),
    { body: '{"choices":[]}' },
    'All is well.',
  ])
  t.match(session, { status: 'completed', num_turns: 4 }, 'an empty reply is asked for again')
})

t.test('an answer that was cut off goes on', async (t) => {
  const cut = says('The shop', 'length')
  const { session, summary } = await play([CHECK_SHOP, cut, 'is well.'])
  t.match(
    { ...session, summary },
    { status: 'completed', num_turns: 3, summary: 'The shop is well.' },
  )
  t.match(toldAfter(1), /cut off because it was too long\. Go on/)
  const endless = await play([CHECK_SHOP, cut])
  t.match(endless.summary, /^The shop The shop/, 'not without end')
  t.match(endless.session, { status: 'completed', num_turns: 5 })
})

/** How servers refuse tools. */
const NO_TOOLS: readonly (readonly [from: string, status: number, message: string])[] = [
  ['Ollama', 400, 'registry.ollama.ai/library/gemma3:latest does not support tools'],
  [
    'vLLM',
    400,
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
  ],
  ['llama.cpp', 500, 'tools param requires --jinja flag'],
  ['OpenRouter', 404, 'No endpoints found that support tool use.'],
  ['LiteLLM', 400, "UnsupportedParamsError: ollama does not support parameters: ['tools']"],
  [
    'LiteLLM, with the value',
    400,
    "together_ai does not support parameters: {'tools': [{'type': 'function'}]}, for model=x",
  ],
  ['vLLM behind a router', 400, 'tool_choice="auto" requires --tool-call-parser to be set'],
  ['SGLang', 400, 'Unsupported tool_call_parser: None'],
  ['llama.cpp of 2024', 500, 'Unsupported param: tools'],
  ['llama.cpp of early 2025', 500, 'Cannot use tools with stream'],
  ['OpenAI', 404, 'tools is not supported in this model. For a list of supported models, see'],
  ['Azure', 400, 'Unrecognized request argument supplied: tools'],
  ['Gemini', 400, 'Function calling is not enabled for models/gemma-3-12b-it'],
  ['Bedrock', 400, "This model doesn't support tool use in streaming mode."],
  ['DashScope', 400, '<400> InternalError.Algo.InvalidParameter: The tool call is not supported.'],
]

/** How servers say that a tool is described wrongly: that is our mistake, and not theirs. */
const WRONG_TOOLS: readonly (readonly [from: string, status: number, message: string])[] = [
  ['LM Studio', 400, "Invalid 'tools': function.name requires string"],
  [
    'OpenAI',
    400,
    "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
  ],
  [
    'OpenAI, a schema',
    400,
    "Invalid schema for function 'recall': schema must have type 'object' and not have 'oneOf'/'anyOf' at the top level.",
  ],
  [
    'Ollama',
    400,
    'json: cannot unmarshal array into Go struct field .tools.function.parameters.properties of type map[string]api.ToolProperty',
  ],
  [
    'llama.cpp',
    400,
    'JSON schema conversion failed:\nUnrecognized schema: {"required":["minutes"]}',
  ],
  [
    'vLLM',
    400,
    "[{'type': 'missing', 'loc': ('body', 'tools', 0, 'function', 'name'), 'msg': 'Field required', 'input': {}}]",
  ],
  [
    'Gemini',
    400,
    '* GenerateContentRequest.tools[0].function_declarations[34].name: Invalid function name. Must start with a letter or an underscore.',
  ],
]

t.test('a tool that the endpoint finds wrong is a failure, and is not left out', async (t) => {
  for (const [from, status, message] of WRONG_TOOLS) {
    const { session, problem } = await play([refusal(status, { message }), 'All is well.'])
    t.match(session, { status: 'failed', num_turns: 0 }, from)
    t.match(problem, `the model endpoint answered ${status}`, from)
    t.equal(asked().length, 1, `${from}: it is not asked again`)
  }
})

t.test('an endpoint that takes no tools is told of them in words', async (t) => {
  const call = '<tool_call>{"name": "run_check", "arguments": {"service": "shop"}}</tool_call>'
  // Another endpoint: what has called a tool by the protocol is not read as text.
  const { ops, asked, play } = await startModelOps(t)
  for (const [from, status, message] of NO_TOOLS) {
    const before = ops.server.logs().length
    const { session, summary } = await play([refusal(status, { message }), call, 'All is well.'])
    const logs = ops.server.logs().slice(before)
    const said = logs.filter((line) => line.includes('model is asked without tools'))
    t.match(
      said,
      [`"session":${session.id},"problem":"the model endpoint answered ${status}`],
      from,
    )
    t.equal(said.length, 1, `${from}: said once`)
    const end = { ...session, summary }
    t.match(end, { status: 'completed', num_turns: 2, summary: 'All is well.' }, from)
    const [first, second, third] = asked()
    t.ok(first?.tools, from)
    t.notOk(second?.tools ?? third?.tools, `${from}: without tools from then on`)
    t.match(second?.messages[0]?.content, /<tool_call>.*\n(?:.*\n)*\{"name":"list_services"/, from)
    t.notMatch(second?.messages[0]?.content, /"name":"(remember|escalate)"/, `${from}: what acts`)
    const roles = third?.messages.map(({ role }) => role)
    t.same(roles, ['system', 'user', 'assistant', 'user'], from)
    t.match(third?.messages[3]?.content, /^Between the two lines RESULT-\w+ .*\nok health/s, from)
    t.match(third?.messages[2]?.content, /^<tool_call>\{"name": "run_check"/, from)
  }
})

t.test('one that takes no stream_options is asked without', async (t) => {
  const place = '"loc":["body","stream_options"]'
  for (const [from, no] of [
    [
      'Mistral',
      { status: 422, body: `{"detail":[{${place},"msg":"Extra inputs are not permitted"}]}` },
    ],
    ['Azure', refusal(400, { message: 'Unrecognized request argument supplied: stream_options' })],
  ] as const) {
    const { session } = await play([no, CHECK_SHOP, 'All is well.'])
    t.match(session, { status: 'completed', num_turns: 2 }, from)
    const sent = asked().map(({ stream_options: has, tools }) => [
      has !== undefined,
      tools?.length,
    ])
    t.same(
      sent,
      [
        [true, 9],
        [false, 9],
        [false, 9],
      ],
      from,
    )
  }
})

const IN_STREAM = { error: { code: 500, message: 'Context size has been exceeded.' } }
/** How servers say that a conversation is too long. */
const TOO_LONG: readonly (readonly [from: string, answer: Answer])[] = [
  [
    'llama.cpp',
    refusal(400, {
      message:
        'request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it',
    }),
  ],
  [
    'llama.cpp, in its stream',
    {
      headers: { 'content-type': 'text/event-stream' },
      body: `data: ${JSON.stringify(IN_STREAM)}\n\n`,
    },
  ],
  [
    'vLLM',
    refusal(400, {
      message:
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
    }),
  ],
  [
    'LM Studio',
    refusal(
      400,
      'The number of tokens to keep from the initial prompt is greater than the context length.',
    ),
  ],
  [
    'Gemini',
    refusal(400, {
      message:
        'The input token count (40000) exceeds the maximum number of tokens allowed (32768).',
    }),
  ],
  ['Anthropic', refusal(400, { message: 'prompt is too long: 208310 tokens > 200000 maximum' })],
]

t.test('a conversation that is too long loses its oldest tool results', async (t) => {
  const first = calls(['run_check', { service: 'first' }])
  const second = calls(['run_check', { service: 'second' }])
  for (const [from, no] of TOO_LONG) {
    const { session, summary } = await play([first, second, CHECK_SHOP, no, 'All is well.'])
    const end = { ...session, summary }
    t.match(end, { status: 'completed', num_turns: 4, summary: 'All is well.' }, from)
    const results =
      asked()
        .at(-1)
        ?.messages.filter(({ role }) => role === 'tool') ?? []
    const dropped = /^\(This result was dropped to make room/
    const contents = [dropped, /no service "second"/, SHOP_IS_WELL].map((content) => ({ content }))
    t.match(results, contents, from)
    t.match(outputOf(ops.env, session.id), /the oldest tool results are dropped/, from)
  }
  const [, no] = TOO_LONG[0] ?? []
  const { session } = await play([CHECK_SHOP, no ?? ''])
  t.match(session, { status: 'failed' }, 'with nothing left to drop it fails')
  t.equal(asked().length, 3)
})

t.test('a model that is being loaded is waited for', async (t) => {
  const loading = refusal(503, { code: 503, message: 'Loading model', type: 'unavailable_error' })
  const { session } = await play([loading, loading, CHECK_SHOP, 'All is well.'])
  t.match(session, { status: 'completed', num_turns: 2 })
  const line =
    /answered 503 \(Loading model\); it is waited for, at most 60 s \(OPS_FIRST_OUTPUT_S\)/
  t.match(outputOf(ops.env, session.id), line)
  const hasty = await startModelOps(t, { OPS_FIRST_OUTPUT_S: '1' })
  const { problem } = await hasty.play([loading])
  t.match(problem, /answered 503 \(Loading model\), still after 1 s \(OPS_FIRST_OUTPUT_S\)/)
})

t.test('a web page is one failure', async (t) => {
  for (const type of ['text/html; charset=utf-8', 'text/plain']) {
    const page = { type, body: '<!doctype html>\n<title>Sign in</title>' }
    const { session, problem } = await play([page])
    t.match(session, { status: 'failed', num_turns: 0 }, type)
    t.match(problem, /is not a model endpoint: look at OPS_MODEL_URL/, type)
    t.equal(asked().length, 1, type)
  }
})
