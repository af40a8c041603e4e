/** Characters that a prompt may have. */
export const PROMPT_LONGEST = 100_000
/** What a prompt must have, as a refusal says it. */
export const PROMPT_RULE = `${PROMPT_LONGEST} characters at most, and no NUL`

/** Whether a prompt can be kept and given to a runner; whether it says anything is another question. */
export function fitsPrompt(text: string): boolean {
  return text.length <= PROMPT_LONGEST && !text.includes('\0')
}
