/** What an endpoint means by an error. */
export type Meaning =
  /** It has no room for the conversation. */
  | 'too long'
  /** It will answer once its model is loaded. */
  | 'loading'
  /** It does not take the member `stream_options`. */
  | 'no stream_options'
  /** It, or its model, takes no tools. */
  | 'no tools'

/**
 * How endpoints say it: no code or type is common to them. Each list has phrases that stand
 * together in a message, in lower case and with spaces for `_` and `-`.
 */
const MEANINGS: readonly (readonly [Meaning, readonly (readonly string[])[]])[] = [
  ['no stream_options', [['stream options'], ['include usage']]],
  [
    'too long',
    [
      // llama.cpp, vLLM, LM Studio, hosted ones.
      ['context length'],
      ['context size'],
      ['context window'],
      ['exceed context'],
      ...['prompt', 'input', 'request', 'conversation'].flatMap((what) =>
        ['too long', 'too large'].flatMap((size) => [
          [`${what} ${size}`],
          [`${what} is ${size}`],
          [`${what} was ${size}`],
        ]),
      ),
      ['token count'],
      ['token limit'],
      ['too many tokens'],
      ['too many input tokens'],
      ['max new tokens'],
      ['exceed', 'tokens'],
    ],
  ],
  [
    'no tools',
    [
      // Ollama.
      ['does not support tools'],
      // vLLM and SGLang, started without a parser of tool calls.
      ['tool call parser to be set'],
      ['unsupported tool call parser'],
      // llama.cpp, also older ones.
      ['tools param requires'],
      ['unsupported param: tools'],
      ['tools param is not fully supported'],
      ['cannot use tools with stream'],
      // OpenRouter, Bedrock.
      ['support tool use'],
      // LiteLLM.
      ['does not support parameters', "'tools'"],
      // OpenAI, Azure, Gemini, DashScope and other hosted ones.
      ['tools is not supported'],
      ['tools are not supported'],
      ['argument supplied: tools'],
      ['function calling is not enabled'],
      ['function calling is not supported'],
      ['function calling is unsupported'],
      ['does not support function call'],
      ['does not support tool call'],
      ['tool call is not supported'],
      ['tool calling is not supported'],
    ],
  ],
]

/** A limit of tokens a minute has nothing to do with the length of a conversation. */
const RATE = ['rate limit', 'ratelimit', 'tokens per', 'token per', 'tpm']
const LOADING = [
  'loading',
  'being loaded',
  'not loaded',
  'not yet loaded',
  'not ready',
  'not yet ready',
  'warming up',
  'starting up',
]
/** Authentication, limits of rate, and what goes away by itself. */
const OTHER_STATUSES = [401, 403, 429, 502, 504]

/** Undefined for an error that means nothing in particular. */
export function meaningOf(status: number, message: string): Meaning | undefined {
  const text = message.toLowerCase().replaceAll(/[_-]/g, ' ')
  const has = (phrase: string) => text.includes(phrase)
  if (status === 503) return LOADING.some(has) ? 'loading' : undefined
  if (OTHER_STATUSES.includes(status) || RATE.some(has)) return undefined
  return MEANINGS.find(([, ways]) => ways.some((phrases) => phrases.every(has)))?.[0]
}
