/**
 * How models mark their reasoning, which stands at the beginning of a reply. What a mark opens goes
 * up to the next one that closes it, or that begins the answer.
 */
const OPENING = [
  // DeepSeek, Qwen, Seed and most others.
  '<(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)>',
  // Magistral.
  String.raw`\[THINK\]`,
  // Kimi.
  '◁think▷',
  String.raw`<\|begin_of_thought\|>`,
  // gpt-oss.
  String.raw`<\|channel\|>analysis(?:<\|message\|>)?`,
  // Gemma.
  String.raw`<\|channel>thought`,
  '<unused94>thought',
]
const CLOSING = [
  '</(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)>',
  String.raw`\[/THINK\]`,
  '◁/think▷',
  String.raw`<\|end_of_thought\|>`,
  String.raw`<channel\|>`,
  '<unused95>',
]
/** Of gpt-oss: the answer begins with it. */
const NEXT = String.raw`<\|(?:end|start)\|>|<\|channel\|>(?!analysis)`
const OPENS = new RegExp(`^(?:${OPENING.join('|')})`, 'i')
const CLOSES = new RegExp(`(?<closing>${CLOSING.join('|')})|${NEXT}`, 'gi')

/** Marks of a chat template that a server has left at the ends of a text. */
const TEMPLATE_START =
  /^(?:<\|end\|>|<\|start\|>assistant|<\|channel\|>(?:final|commentary)|<\|constrain\|>\w{1,20}|<\|message\|>)/
const TEMPLATE_ENDS = [
  '<|end|>',
  '<|return|>',
  '<|im_end|>',
  '<|endoftext|>',
  '<|eot_id|>',
  '<|eom_id|>',
  '<|end_of_text|>',
  '<｜end▁of▁sentence｜>',
  '<end_of_turn>',
  '</s>',
]

/**
 * A reply without the reasoning that it begins with. Reasoning that is not closed goes up to the
 * end. A mark further on stays: the reply may quote what somebody has written into a log.
 */
export function withoutReasoning(text: string): string {
  return withoutEnd(readReasoning(text, false).text).trim()
}

/**
 * The same for a part of a reply with nothing but reasoning before it; `isOpen` says whether
 * reasoning goes on where the part begins, and in the result where it ends.
 */
export function readReasoning(text: string, isOpen: boolean): { text: string; isOpen: boolean } {
  let at = 0
  let open = isOpen
  for (;;) {
    if (open) {
      CLOSES.lastIndex = at
      const closing = CLOSES.exec(text)
      if (closing === null) return { text: '', isOpen: true }
      const isPart = closing.groups?.['closing'] !== undefined
      at = closing.index + (isPart ? closing[0].length : 0)
      open = false
    }
    const rest = text.slice(at).trimStart()
    const [mark] = OPENS.exec(rest) ?? TEMPLATE_START.exec(rest) ?? []
    if (mark === undefined) return { text: at === 0 ? text : rest, isOpen: false }
    open = OPENS.test(mark)
    at = text.length - rest.length + mark.length
  }
}

/** A text without the marks at its end. */
export function withoutEnd(text: string): string {
  let shown = text
  for (;;) {
    const end = shown.trimEnd()
    const mark = TEMPLATE_ENDS.find((one) => end.endsWith(one))
    if (mark === undefined) return shown
    shown = end.slice(0, -mark.length)
  }
}
