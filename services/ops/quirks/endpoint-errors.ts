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
 * How endpoints say it: llama.cpp, vLLM, Ollama, LM Studio, LiteLLM, OpenRouter and hosted ones.
 * No code or type is common to them.
 */
const MEANINGS: readonly (readonly [Meaning, readonly RegExp[]])[] = [
  ['no stream_options', [/stream_options|include_usage/i]],
  [
    'too long',
    [
      /context[ _-]?(?:length|size|window)|exceed_context/i,
      /(?:prompt|input|request|conversation)(?: is| was)? too (?:long|large)/i,
      /tokens? (?:count|limit)|too many (?:input )?tokens|max_new_tokens/i,
      /exceeds?\b.{0,40}\btokens|tokens.{0,60}\bexceeds?/i,
    ],
  ],
  [
    'no tools',
    [
      /support(?:s|ed)?\b.{0,40}\b(?:tool|function)/i,
      /\b(?:tool|function)s?\b.{0,60}(?:not (?:supported|permitted|allowed|enabled)|unsupported)/i,
      /\b(?:tool|function)s?\b.{0,60}(?:requires?|disabled)/i,
    ],
  ],
]

/** A limit of so many tokens a minute has nothing to do with the length of a conversation. */
const RATE = /rate.?limit|tokens? per|\bTPM\b/i
const LOADING = /\bloading\b|being loaded|not (?:yet )?(?:loaded|ready)|warming up|starting up/i
/** Authentication, limits of rate, and what goes away by itself. */
const OTHER_STATUSES = [401, 403, 429, 502, 504]

/** Undefined for an error that means nothing in particular. */
export function meaningOf(status: number, message: string): Meaning | undefined {
  if (status === 503) return LOADING.test(message) ? 'loading' : undefined
  if (OTHER_STATUSES.includes(status) || RATE.test(message)) return undefined
  return MEANINGS.find(([, words]) => words.some((one) => one.test(message)))?.[0]
}
