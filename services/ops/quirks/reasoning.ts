/**
 * How models mark their reasoning in a text. What a mark opens goes up to the next one that closes
 * it, or that begins the answer.
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
/** Of gpt-oss: it ends what is open, and is nothing otherwise. */
const NEXT = [String.raw`<\|(?:end|start)\|>`, String.raw`<\|channel\|>(?!analysis)`]
const MARK = new RegExp(
  `(?<opening>${OPENING.join('|')})|(?<closing>${CLOSING.join('|')})|(?:${NEXT.join('|')})`,
  'gi',
)

/** Marks of a chat template that a server has left in the text. */
const TEMPLATE_MARKS = [
  String.raw`(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)\s*` +
    String.raw`(?:<\|constrain\|>\w+)?<\|message\|>`,
  String.raw`<\|(?:end|return|im_end|endoftext|eot_id|eom_id|end_of_text)\|>`,
  '<｜end▁of▁sentence｜>',
  '<end_of_turn>',
  '</s>',
]
const TEMPLATE_MARK = new RegExp(TEMPLATE_MARKS.join('|'), 'g')

/**
 * A text without the reasoning of the model that wrote it. Reasoning that is not closed goes up to
 * the end. With a mark that closes alone, it is all before: its opening stood in the prompt.
 */
export function withoutReasoning(text: string): string {
  return readReasoning(text, false).text.trim()
}

/** The same for a part of a text; `isOpen` says whether reasoning goes on where it begins. */
export function readReasoning(text: string, isOpenBefore: boolean) {
  let kept = ''
  let from = 0
  let isOpen = isOpenBefore
  /** Whether all before it is reasoning as well. */
  let isAllBefore = false
  for (const { 0: mark, index, groups } of text.matchAll(MARK)) {
    if (groups?.['opening'] !== undefined) {
      if (!isOpen) kept += text.slice(from, index)
      isOpen = true
    } else if (groups?.['closing'] !== undefined) {
      if (!isOpen) {
        kept = ''
        isAllBefore = true
      }
      isOpen = false
      from = index + mark.length
    } else if (isOpen) {
      isOpen = false
      from = index
    }
  }
  const rest = isOpen ? '' : text.slice(from)
  return { text: (kept + rest).replaceAll(TEMPLATE_MARK, ''), isOpen, isAllBefore }
}
